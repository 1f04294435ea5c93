"""`python -m uag_core`: hands over to the command line and knows nothing else."""

from __future__ import annotations

import sys

from uag_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
