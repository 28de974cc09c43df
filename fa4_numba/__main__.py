"""``python -m fa4_numba``."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
