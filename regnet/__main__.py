"""``python -m regnet``: the ``regnet`` command where its script is not on the path."""

import sys

from regnet.cli.main import main

sys.exit(main())
