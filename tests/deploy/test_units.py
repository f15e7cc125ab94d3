"""Laws of the units: systemd accepts them, they are hardened alike, and they agree with the configuration."""

import re
import shutil
from pathlib import Path

import pytest
from neardup.config import Config, load
from neardup.insights.plan import DAEMON, sweep_bytes
from neardup.option_values import DEFAULT_LISTEN

from tests.deploy.test_deploy import run
from tests.support.deploy_files import DEPLOY, PRODUCTION, text_of
from tests.support.synthetic_stories import PLATFORM

UNITS = (
    "neardup.service",
    "neardup-backfill.service",
    "neardup-review.service",
    "neardup-serve.service",
    "neardup-backup.service",
    "neardup-embed.service",
    "neardup-audit.service",
)
TIMERS = ("neardup-backup.timer", "neardup-embed.timer", "neardup-audit.timer")
CONFIG_PATH = "/etc/neardup/config.toml"
# The lines below "# Hardening" in each unit, without comments.
HARDENING = """\
UMask=0007
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateMounts=yes
PrivateDevices=yes
DevicePolicy=closed
PrivateUsers=yes
ProtectClock=yes
ProtectHostname=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
KeyringMode=private
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources @keyring @memlock
SystemCallFilter=~kcmp name_to_handle_at personality process_vm_readv process_vm_writev remap_file_pages userfaultfd
SystemCallFilter=~msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget
SystemCallErrorNumber=EPERM
"""

each_unit = pytest.mark.parametrize("unit", UNITS)


@pytest.fixture
def production() -> Config:
    return load(PRODUCTION)


def settings(unit: str) -> dict[str, str]:
    """The settings of a unit; the last value of a repeated setting."""
    lines = text_of(unit).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@each_unit
def test_systemd_accepts_a_unit(unit: str, tmp_path: Path) -> None:
    assert_accepted([unit], unit, tmp_path)


@pytest.mark.parametrize("timer", TIMERS)
def test_systemd_accepts_a_timer(timer: str, tmp_path: Path) -> None:
    assert_accepted([timer, timer.replace(".timer", ".service")], timer, tmp_path)


def assert_accepted(units: list[str], verified: str, folder: Path) -> None:
    for unit in units:  # the program is not installed, so ExecStart names another one
        text = re.sub(r"(?m)^ExecStart=.*$", f"ExecStart={shutil.which('true')}", text_of(unit))
        (folder / unit).write_text(text, encoding="utf-8")
    output = run("systemd-analyze", "verify", folder / verified)
    errors = [line for line in output.splitlines() if any(unit in line for unit in units)]
    assert not errors, "\n".join(errors)


@each_unit
def test_a_unit_is_hardened(unit: str) -> None:
    run("systemd-analyze", "security", "--offline=true", "--threshold=12", DEPLOY / unit)


def test_all_units_have_the_same_hardening_and_user() -> None:
    for unit in UNITS:
        hardened = text_of(unit).partition("# Hardening")[2].partition("[Install]")[0].splitlines()[1:]
        assert [line for line in hardened if line and not line.startswith("#")] == HARDENING.splitlines(), unit
    for key in ("User", "Group", "StateDirectoryMode", "EnvironmentFile"):
        values = {settings(unit)[key] for unit in UNITS}
        assert len(values) == 1, f"{key} differs: {values}"
    assert all("MemoryMax" in settings(unit) for unit in UNITS), "a unit has no memory limit"


def test_the_group_can_use_the_ledger_and_others_cannot() -> None:
    """The setgid bit passes the folder's group on to new files; the umask denies access to others only."""
    for unit in UNITS:
        assert (settings(unit)["StateDirectoryMode"], settings(unit)["UMask"]) == ("2770", "0007"), unit


def test_a_unit_may_bind_only_its_configured_port(production: Config) -> None:
    addresses = {
        "neardup-review.service": production.review.listen,
        "neardup-serve.service": production.serve.listen or DEFAULT_LISTEN,
        "neardup-backup.service": None,
        "neardup-embed.service": None,
        "neardup-audit.service": None,
    }
    for unit in UNITS:
        listen = addresses.get(unit, production.metrics.listen)
        allowed = settings(unit).get("SocketBindAllow")
        assert allowed == (f"ipv4:tcp:{listen.rpartition(':')[2]}" if listen else None), unit
        assert ("PrivateNetwork" in settings(unit)) == (unit == "neardup-backup.service"), unit


def test_a_backfills_memory_limit_allows_its_sweep() -> None:
    allowed = int(settings("neardup-backfill.service")["MemoryMax"].removesuffix("G")) * 2**30
    assert allowed > sweep_bytes(PLATFORM) + DAEMON, "the kernel would kill the backfill in its sweep"


def test_sysusers_creates_the_units_user(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    run("systemd-sysusers", f"--root={tmp_path}", DEPLOY / "neardup.sysusers.conf")
    users = [line.split(":") for line in (tmp_path / "etc" / "passwd").read_text().splitlines()]
    groups = [line.partition(":")[0] for line in (tmp_path / "etc" / "group").read_text().splitlines()]
    [home] = [user[5] for user in users if user[0] == settings(UNITS[0])["User"]]
    assert home == f"/var/lib/{settings(UNITS[0])['StateDirectory']}"
    assert settings(UNITS[0])["Group"] in groups


@each_unit
def test_a_unit_and_the_configuration_agree(unit: str, production: Config) -> None:
    unit_settings = settings(unit)
    assert f" --config {CONFIG_PATH} " in unit_settings["ExecStart"], unit_settings["ExecStart"]
    assert CONFIG_PATH in PRODUCTION.read_text(encoding="utf-8")
    state = Path("/var/lib") / unit_settings["StateDirectory"].split()[0]
    assert production.ledger.path.parent == state, f"only {state} can be written"
    assert isinstance(production.export.path, Path)
    assert production.export.path.parent == state, f"only {state} can be written"
    assert production.run.shutdown_seconds < int(unit_settings["TimeoutStopSec"]), (
        "systemd would kill it before its shutdown ends"
    )
