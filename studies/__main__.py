"""``python -m studies NAME [options]``, the same as ``trellis reproduce NAME [options]``."""

import sys

from trellis.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", *sys.argv[1:]]))
