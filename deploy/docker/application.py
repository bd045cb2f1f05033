"""What spark-submit starts in the image: its arguments are those of tocsin, as `job -c /etc/tocsin/tocsin.yml`."""

import sys

from engine.cli.main import main

sys.exit(main())
