"""Laws: the tools accept every file under deploy/; every alert is tested; the dashboard shows every metric, and only
metrics that exist; systemd accepts the units, which are hardened alike; the files agree with one another, with the
configuration and with the daemon, those of deploy/container and deploy/spark too.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import click
import pytest
import redis
import yaml
from botocore.validate import ParamValidator
from neardup import __version__
from neardup.cli import main
from neardup.config import Config, load
from neardup.core.candidates.banding import Banding
from neardup.core.languages import LANGUAGES
from neardup.index.redis import open_redis
from neardup.insights.plan import DAEMON, sweep_bytes
from neardup.option_values import DEFAULT_LISTEN
from neardup.telemetry.metrics import make_metrics
from prometheus_client import REGISTRY

from tests.support.languages import CODES
from tests.support.paths import DEPLOY, PRODUCTION, ROOT, read_yaml, text_of
from tests.support.servers import redis_server
from tests.support.synthetic import PLATFORM

PROMETHEUS = DEPLOY / "prometheus"
RULE_TESTS = ("neardup.rules.test.yml", "neardup.rules.days.test.yml")
SAMPLES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
TARGET_LABELS = {"job", "instance", "le"}


def run(*command: str | Path) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


@pytest.fixture
def production() -> Config:
    return load(PRODUCTION)


@pytest.fixture
def dashboard() -> dict[str, Any]:
    return dict(json.loads(text_of("grafana/neardup.json")))


async def test_redis_accepts_the_configuration_and_suits_the_daemon(tmp_path: Path) -> None:
    conf = tmp_path / "redis.conf"
    (tmp_path / "redis.acl").write_text(text_of("redis.acl"))
    conf.write_text(text_of("redis.conf").replace("/var/lib/redis", str(tmp_path)).replace("/etc/redis", str(tmp_path)))
    sock = tmp_path / "redis.sock"
    overrides = ("--unixsocket", str(sock))
    with redis_server(tmp_path, "--include", str(conf), *overrides) as url, redis.Redis.from_url(url) as client:
        config = {**client.config_get("max*"), **client.config_get("set-max-*"), **client.config_get("append*")}
        assert config["maxmemory-policy"] == "noeviction", config
        assert config["maxmemory"] == str(5 * 2**30), config
        assert config["set-max-intset-entries"] == "1000000", config
        assert (config["appendonly"], config["appendfsync"]) == ("yes", "everysec"), config
        assert sock.stat().st_mode & 0o777 == 0o770, "the socket must be open to owner and group only"
        index = await open_redis(url, dict.fromkeys(LANGUAGES, Banding()), CODES)
        problem = await index.find_problem()
        await index.close()
    assert problem is None, problem


@pytest.mark.parametrize(
    "command",
    [
        ("check", "config", PROMETHEUS / "prometheus.yml"),
        ("check", "rules", PROMETHEUS / "neardup.rules.yml"),
        *(("test", "rules", PROMETHEUS / name) for name in RULE_TESTS),
    ],
    ids=lambda command: " ".join((*command[:2], Path(command[2]).name)),
)
def test_promtool_accepts(command: tuple[str | Path, ...]) -> None:
    run("promtool", *command)


def test_every_alert_is_tested_firing_and_silent() -> None:
    alerts = {rule["alert"] for group in read_yaml("neardup.rules.yml")["groups"] for rule in group["rules"]}
    tests = [test for name in RULE_TESTS for test in read_yaml(name)["tests"]]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    assert alerts == {case["alertname"] for case in cases if case["exp_alerts"]}, "an alert is never tested firing"
    assert alerts == {case["alertname"] for case in cases if not case["exp_alerts"]}, "an alert is never tested silent"


def test_every_alert_names_its_section_of_the_runbook() -> None:
    anchors = {heading.lower() for heading in re.findall(r"(?m)^## (\w+)$", text_of("RUNBOOK.md"))}
    rules = [rule for group in read_yaml("neardup.rules.yml")["groups"] for rule in group["rules"]]
    for rule in rules:
        path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert path == "file:///opt/neardup/deploy/RUNBOOK.md", f"{rule['alert']}: that is not where it is installed"
        assert anchor == rule["alert"].lower() and anchor in anchors, f"{rule['alert']}: the runbook has no #{anchor}"


def declared() -> dict[str, set[str]]:
    """Each metric -> the names of its samples."""
    make_metrics()
    return {
        family.name: {family.name + suffix for suffix in SAMPLES[family.type]}
        for family in REGISTRY.collect()
        if family.type in SAMPLES
    }


def rule_expressions() -> list[str]:
    return [rule["expr"] for group in read_yaml("neardup.rules.yml")["groups"] for rule in group["rules"]]


def found(key: str, node: Any) -> Iterator[str]:
    """Every string value of `key`, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key and isinstance(value, str):
                yield value
            yield from found(key, value)
    elif isinstance(node, list):
        for value in node:
            yield from found(key, value)


def named(expressions: list[str]) -> set[str]:
    return set(re.findall(r"\b(?:neardup_\w+|process_\w+|up\b)", " ".join(expressions)))


def test_rules_and_dashboard_use_only_metrics_that_exist(dashboard: dict[str, Any]) -> None:
    known = set().union(*declared().values(), {"up"})
    used = named([*rule_expressions(), *found("expr", dashboard), *found("definition", dashboard)])
    assert used <= known, f"not declared in neardup/telemetry/metrics.py: {sorted(used - known)}"


def test_the_dashboard_shows_every_metric(dashboard: dict[str, Any]) -> None:
    shown = named(list(found("expr", dashboard)))
    hidden = {name for name, samples in declared().items() if name.startswith("neardup_") and not samples & shown}
    assert not hidden, f"on no panel: {sorted(hidden)}"
    assert "process_resident_memory_bytes" in shown, "memory is on no panel"


def test_rules_and_dashboard_use_only_labels_that_exist(dashboard: dict[str, Any]) -> None:
    wrappers = make_metrics()
    known = TARGET_LABELS.union(*(wrapper._labelnames for wrapper in wrappers))
    text = " ".join([*rule_expressions(), *found("expr", dashboard)])
    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", text))
    used.update(name for names in re.findall(r"\b(?:by|on) \(([^)]*)\)", text) for name in re.findall(r"\w+", names))
    assert used <= known, f"no metric has the labels {sorted(used - known)}"


def test_the_dashboard_s_queries_are_promql(dashboard: dict[str, Any], tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{n}", "expr": expr.replace("$__rate_interval", "5m").replace("$__range", "1d")}
        for n, expr in enumerate(found("expr", dashboard))
    ]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    run("promtool", "check", "rules", file)


def test_the_dashboard_s_panels_have_titles_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        at, title = panel["gridPos"], panel["title"]
        assert title, f"panel {panel['id']} has no title"
        assert at["x"] + at["w"] <= 24, f"{title!r} leaves the grid"
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert cell not in taken, f"{title!r} overlaps {taken[cell]!r}"
            taken[cell] = title
    assert {"datasource", "language"} <= {variable["name"] for variable in dashboard["templating"]["list"]}


def test_the_configuration_agrees_with_redis_prometheus_and_athena(production: Config) -> None:
    assert (production.source.kind, production.content.url[:5]) == ("athena", "s3://")
    socket = re.search(r"(?m)^unixsocket (.+)$", text_of("redis.conf"))
    assert socket is not None
    assert production.index.url == f"unix://{socket[1]}"
    [job] = read_yaml("prometheus.yml")["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [production.metrics.listen]
    ddl = text_of("athena.sql")
    for sql in (production.source.backfill_sql, production.source.daily_sql):
        assert sql.strip() in ddl, f"athena.sql lacks the query\n{sql}"


def test_the_iam_policy_grants_no_wildcard() -> None:
    for statement in json.loads(text_of("iam-policy.json"))["Statement"]:
        actions, resources = ([v] if isinstance(v, str) else v for v in (statement["Action"], statement["Resource"]))
        assert statement["Effect"] == "Allow"
        assert not [action for action in actions if "*" in action], f"{statement['Sid']}: {actions}"
        assert all(re.fullmatch(r"arn:aws:[^*]+(/\*)?", arn) for arn in resources), f"{statement['Sid']}: {resources}"


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


FOLDER = DEPLOY / "container"
IMAGE = (FOLDER / "Containerfile").read_text(encoding="utf-8")


def services() -> dict[str, Any]:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    return dict(compose["services"])


def test_every_container_is_read_only_and_without_privileges() -> None:
    for name, service in services().items():
        hardened = service["read_only"], service["cap_drop"], service["security_opt"], service["tmpfs"]
        assert hardened == (True, ["ALL"], ["no-new-privileges"], ["/tmp"]), name
        assert name == "setup" or "healthcheck" in service, f"{name}: nothing checks its health"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), f"{name} is open to strangers"
    stages = IMAGE.split("\nFROM ")[1:]
    users = [("USER neardup" in stage, re.search(r"AS (\S+)", stage)) for stage in stages if "ENTRYPOINT" in stage]
    assert len(users) == 4 and all(is_user for is_user, _ in users), "a container runs as root"


def test_every_image_is_pinned_and_those_of_the_containerfile_are_built() -> None:
    targets = set(re.findall(r"(?m)^FROM \S+ AS (\S+)", IMAGE))
    for name, service in services().items():
        image, _, version = service["image"].rpartition(":")
        assert re.fullmatch(r"\d+(\.\d+)+", version), f"{name}: {service['image']} is not pinned"
        if image.startswith("localhost/"):
            assert image.removeprefix("localhost/").removeprefix("neardup-") in targets, f"{name}: {image} is not built"
            assert version == __version__, f"{name} has another version than the program"


def test_what_the_images_copy_and_the_services_mount_exists() -> None:
    copied = [path for line in re.findall(r"(?m)^COPY (?!--from)(.*) \S+$", IMAGE) for path in line.split()]
    missing = [path for path in copied if not path.startswith("--") and not (ROOT / path).exists()]
    assert not missing, missing
    mounts = [mount.split(":")[0] for service in services().values() for mount in service.get("volumes", ())]
    assert all((FOLDER / mount).exists() for mount in mounts if mount.startswith(".")), mounts


def test_prometheus_asks_the_services_where_they_listen() -> None:
    config = load(FOLDER / "config.toml")
    assert config.serve.tokens is not None and config.review.moderators is not None
    assert config.serve.tokens.parent == config.review.moderators.parent
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    targets = {target for job in scraped for static in job["static_configs"] for target in static["targets"]}
    ports = {"daemon": config.metrics.listen, "desk": config.review.listen, "serve": services()["serve"]["command"][-1]}
    assert targets == {f"{name}:{listen.rpartition(':')[2]}" for name, listen in ports.items()}


def test_promtool_accepts_the_configuration_of_prometheus() -> None:
    run("promtool", "check", "config", "--syntax-only", FOLDER / "prometheus.yml")


SPARK = DEPLOY / "spark"


def test_the_job_calls_the_command_with_options_that_it_has() -> None:
    job = json.loads((SPARK / "emr-serverless-job.json").read_text(encoding="utf-8"))["jobDriver"]["sparkSubmit"]
    with click.Context(main) as context:
        command = main.get_command(context, "spark")
        assert command is not None
        parsed = command.make_context("spark", list(job["entryPointArguments"]), parent=context)
    assert str(parsed.params["output"]).startswith("s3://")
    words = job["sparkSubmitParameters"].split()
    assert words[::2] == ["--conf"] * (len(words) // 2), "a parameter is no --conf NAME=VALUE"
    assert all(re.fullmatch(r"spark\.[\w.-]+=\S+", word) for word in words[1::2])


def test_the_job_is_one_that_emr_serverless_takes() -> None:
    job = json.loads((SPARK / "emr-serverless-job.json").read_text(encoding="utf-8"))
    model = botocore.session.get_session().get_service_model("emr-serverless")
    shape = model.operation_model("StartJobRun").input_shape
    assert shape is not None
    found = ParamValidator().validate({"clientToken": "token"} | job, shape)
    assert not found.has_errors(), found.generate_report()


def test_what_the_image_copies_and_calls_exists() -> None:
    image = (SPARK / "Dockerfile").read_text(encoding="utf-8")
    names = set(re.findall(r"deploy/spark/[\w.]+\w", image))
    assert names >= {"deploy/spark/neardup_spark.py", "deploy/spark/config.toml"}
    assert all((ROOT / name).exists() for name in names)


def test_the_configuration_of_the_image_loads() -> None:
    assert load(SPARK / "config.toml").source.kind == "athena"
