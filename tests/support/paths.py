"""The folders of the project and its samples, and the files under deploy/."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "daemon" / "neardup" / "samples"


DEPLOY = ROOT / "deploy"
PRODUCTION = ROOT / "config.toml"


def text_of(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def read_yaml(name: str) -> Any:
    return yaml.safe_load(text_of(f"prometheus/{name}"))
