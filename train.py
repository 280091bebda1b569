"""Train a registration network: the same as ``regnet train``; see ``configs/train.yaml``."""

import sys

from regnet.cli.main import main
from regnet.memory import keep_freed

if __name__ == "__main__":
    keep_freed()
    sys.exit(main(["train", *sys.argv[1:]]))
