"""The embedded pair on one prompt of every kind, with all engines of the contract.

    python -m benchmarks.kinds [any flag of `python -m uag_core bench`]

A shorthand for `bench` with `--limit 10` and every method; flags given here come last and win.
Ratios come from one run; nothing else should run meanwhile.
"""

from __future__ import annotations

import sys

from uag_core import cli
from uag_core.benchmark.plan import ALL_METHODS


def main(argv: list[str] | None = None) -> int:
    flags = sys.argv[1:] if argv is None else argv
    return cli.main(["bench", "--limit", "10", "--methods", ",".join(ALL_METHODS), *flags])


if __name__ == "__main__":
    sys.exit(main())
