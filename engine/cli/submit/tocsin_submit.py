"""Run tocsin by spark-submit: `spark-submit --master MASTER tocsin_submit.py run -c tocsin.yml`."""

from __future__ import annotations

from engine.cli.main import main

if __name__ == "__main__":
    main()
