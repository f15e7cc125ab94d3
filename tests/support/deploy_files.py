"""The files under deploy/."""

from typing import Any

import yaml

from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy"
PRODUCTION = ROOT / "config.toml"


def text_of(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def read_yaml(name: str) -> Any:
    return yaml.safe_load(text_of(f"prometheus/{name}"))
