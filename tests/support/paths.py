"""The folders of the project and its samples."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "daemon" / "neardup" / "samples"
