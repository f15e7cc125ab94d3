"""The entry point for spark-submit: `spark-submit neardup_spark.py --config CONFIG --output FOLDER`."""

import sys

from neardup.cli import main

main(["spark", *sys.argv[1:]])
