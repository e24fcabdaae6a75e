"""`python -m unordinal`, and the entry point of the `unordinal` script."""

import os
import sys

# OpenMP's threads spin while they wait for work. On a busy machine they spin against the work itself, which costs up to
# nine tenths of the speed. A bound on the spinning costs nothing on a free machine (docs/results/busy.md).
SPINNING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")  # variables by which users choose for themselves
SPIN_COUNT = "100000"


def bound_spinning() -> None:
    """Bound how long OpenMP's threads spin, unless the user has; to be called before torch is imported."""
    if not any(name in os.environ for name in SPINNING):
        os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT


def main() -> None:
    """Run the command line, imported late so that even a Ctrl-C during the imports ends in one line."""
    try:
        bound_spinning()
        from unordinal.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.exit("unordinal: interrupted")


if __name__ == "__main__":
    main()
