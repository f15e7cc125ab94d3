"""Laws of the units: systemd accepts them, they are hardened alike, and agree with the configuration they are given."""

import re
import shutil
from pathlib import Path

import pytest
from neardup.config import Config, load
from neardup.insights.plan.project import DAEMON, sweep_bytes

from tests.deploy.test_deploy import run
from tests.support.deploy_files import DEPLOY, text_of
from tests.support.synthetic_stories import PLATFORM

UNITS = ("neardup.service", "neardup-backfill.service", "neardup-review.service", "neardup-backup.service")
TIMER = "neardup-backup.timer"
CONFIG_PATH = "/etc/neardup/config.toml"
# What stands below "# Hardening" in each unit, but for comments.
HARDENING = """\
UMask=0007
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
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
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
"""

each_unit = pytest.mark.parametrize("unit", UNITS)


@pytest.fixture
def production() -> Config:
    return load(DEPLOY / "config.production.toml")


def settings(unit: str) -> dict[str, str]:
    """The settings of a unit; of one that is given twice, the last."""
    lines = text_of(unit).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@each_unit
def test_systemd_finds_a_unit_without_fault(unit: str, tmp_path: Path) -> None:
    assert_no_fault([unit], unit, tmp_path)


def test_systemd_finds_the_timer_without_fault(tmp_path: Path) -> None:
    assert_no_fault([TIMER, TIMER.replace(".timer", ".service")], TIMER, tmp_path)


def assert_no_fault(units: list[str], looked_at: str, folder: Path) -> None:
    for unit in units:  # the program is not installed here; all else is as it is
        text = re.sub(r"(?m)^ExecStart=.*$", f"ExecStart={shutil.which('true')}", text_of(unit))
        (folder / unit).write_text(text, encoding="utf-8")
    said = run("systemd-analyze", "verify", folder / looked_at)
    faults = [line for line in said.splitlines() if any(unit in line for unit in units)]
    assert not faults, "\n".join(faults)


@each_unit
def test_a_unit_is_hardened(unit: str) -> None:
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", DEPLOY / unit)


def test_the_units_differ_in_their_work_only() -> None:
    for unit in UNITS:
        hardened = text_of(unit).partition("# Hardening")[2].partition("[Install]")[0].splitlines()[1:]
        assert [line for line in hardened if line and not line.startswith("#")] == HARDENING.splitlines(), unit
    for key in ("User", "Group", "StateDirectoryMode", "EnvironmentFile", "CacheDirectory"):
        values = {settings(unit)[key] for unit in UNITS}
        assert len(values) == 1, f"{key} differs: {values}"
    assert all("MemoryMax" in settings(unit) for unit in UNITS), "memory without a limit"


def test_the_ledger_s_folder_and_files_are_for_its_group() -> None:
    """The setgid bit gives what is made there the group; the umask takes nothing from it, and all from others."""
    for unit in UNITS:
        assert (settings(unit)["StateDirectoryMode"], settings(unit)["UMask"]) == ("2770", "0007"), unit


def test_a_unit_listens_where_it_is_configured_to(production: Config) -> None:
    served = {"neardup-review.service": production.review.listen, "neardup-backup.service": None}
    for unit in UNITS:
        listen = served.get(unit, production.metrics.listen)
        allowed = settings(unit).get("SocketBindAllow")
        assert allowed == (f"ipv4:tcp:{listen.rpartition(':')[2]}" if listen else None), unit
        assert ("PrivateNetwork" in settings(unit)) == (listen is None), unit


def test_a_backfill_may_have_the_memory_of_its_sweep() -> None:
    allowed = int(settings("neardup-backfill.service")["MemoryMax"].removesuffix("G")) * 2**30
    assert allowed > sweep_bytes(PLATFORM) + DAEMON, "the kernel would kill it when all stories are fingerprinted"


def test_sysusers_makes_the_units_user(tmp_path: Path) -> None:
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
    assert CONFIG_PATH in text_of("config.production.toml")
    state = Path("/var/lib") / unit_settings["StateDirectory"].split()[0]
    assert production.ledger.path.parent == state, f"only {state} can be written"
    assert isinstance(production.export.path, Path)
    assert production.export.path.parent == state, f"only {state} can be written"
    assert production.run.shutdown_seconds < int(unit_settings["TimeoutStopSec"]), "killed before it has drained"
