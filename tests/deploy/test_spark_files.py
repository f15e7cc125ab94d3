"""Laws: the files of deploy/spark agree with one another, with the command and with the configuration."""

import json
import re

import botocore.session
import click
from botocore.validate import ParamValidator
from neardup.cli import main
from neardup.config import load

from tests.support.deploy_files import DEPLOY
from tests.support.paths import ROOT

FOLDER = DEPLOY / "spark"


def test_the_job_calls_the_command_with_options_that_it_has() -> None:
    job = json.loads((FOLDER / "emr-serverless-job.json").read_text(encoding="utf-8"))["jobDriver"]["sparkSubmit"]
    with click.Context(main) as context:
        command = main.get_command(context, "spark")
        assert command is not None
        parsed = command.make_context("spark", list(job["entryPointArguments"]), parent=context)
    assert str(parsed.params["output"]).startswith("s3://")
    words = job["sparkSubmitParameters"].split()
    assert words[::2] == ["--conf"] * (len(words) // 2), "a parameter is no --conf NAME=VALUE"
    assert all(re.fullmatch(r"spark\.[\w.-]+=\S+", word) for word in words[1::2])


def test_the_job_is_one_that_emr_serverless_takes() -> None:
    job = json.loads((FOLDER / "emr-serverless-job.json").read_text(encoding="utf-8"))
    model = botocore.session.get_session().get_service_model("emr-serverless")
    shape = model.operation_model("StartJobRun").input_shape
    assert shape is not None
    found = ParamValidator().validate({"clientToken": "token"} | job, shape)
    assert not found.has_errors(), found.generate_report()


def test_what_the_image_copies_and_calls_exists() -> None:
    image = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    names = set(re.findall(r"deploy/spark/[\w.]+\w", image))
    assert names >= {"deploy/spark/neardup_spark.py", "deploy/spark/config.toml"}
    assert all((ROOT / name).exists() for name in names)


def test_the_configuration_of_the_image_loads() -> None:
    assert load(FOLDER / "config.toml").source.kind == "athena"
