"""Laws: the files of deploy/container agree with one another, with the configuration and with the program.

The files of deploy/spark agree with one another, with the command and with the configuration.
"""

import json
import re
from typing import Any

import botocore.session
import click
import yaml
from botocore.validate import ParamValidator
from neardup import __version__
from neardup.cli import main
from neardup.config import load

from tests.deploy.test_deploy import run
from tests.support.deploy_files import DEPLOY
from tests.support.paths import ROOT

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
