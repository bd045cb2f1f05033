"""A client of kafka-python as a program: `library_client.py DOES SETTINGS TOPIC NUMBER`, until it is killed.

SETTINGS is a file of `name=value` lines with the names Java gives them. reads: takes NUMBER seconds for each record.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kafka


def _reads(settings: Mapping[str, Any], topic: str, seconds: float) -> None:
    for _ in kafka.KafkaConsumer(topic, **settings):
        time.sleep(seconds)


DOES: Mapping[str, Callable[[Mapping[str, Any], str, float], None]] = {"reads": _reads}


def _as_python(settings: Mapping[str, str]) -> dict[str, Any]:
    return {name.replace(".", "_"): int(value) if value.isdecimal() else value for name, value in settings.items()}


def main(does: str, settings: str, topic: str, number: str) -> None:
    """Do it until killed."""
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    said = dict(line.split("=", 1) for line in Path(settings).read_text(encoding="utf-8").splitlines())
    DOES[does](_as_python(said), topic, float(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
