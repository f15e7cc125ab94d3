"""Laws: the tools accept every file under deploy/; every alert is tested; the dashboard shows every metric, and only
metrics that exist; the files agree with one another and with the daemon.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from neardup.config import Config, load
from neardup.core.candidates.banding import Banding
from neardup.core.languages import LANGUAGES
from neardup.index.redis import open_redis
from neardup.telemetry.metrics import make_metrics
from prometheus_client import REGISTRY

from tests.support.deploy_files import DEPLOY, PRODUCTION, read_yaml, text_of
from tests.support.languages import CODES
from tests.support.servers import redis_server

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
