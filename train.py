"""Train a registration network: the same as ``regnet train``; see ``configs/train.yaml``."""

import sys

from regnet.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
