"""Run tocsin by spark-submit: `spark-submit --master MASTER tocsin_submit.py run -c tocsin.yml`."""

from __future__ import annotations

import sys

from engine.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
