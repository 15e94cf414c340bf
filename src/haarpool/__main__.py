"""`python -m haarpool` is `haarpool`."""

import sys

from haarpool.cli import main

if __name__ == "__main__":
    sys.exit(main())
