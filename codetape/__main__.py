"""`python -m codetape` is `codetape`."""

import sys

from codetape.cli import main

if __name__ == "__main__":
    sys.exit(main())
