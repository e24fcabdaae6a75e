"""Commands that several processes can share, started by `torchrun -m unordinal COMMAND ...`."""

import os
import sys
from collections.abc import Callable

from unordinal.console import mute

TOGETHER = ("train", "evaluate", "sample")


def run_together(main: Callable[[list[str]], int], argv: list[str]) -> int:
    """Join the other processes and run a command; only the first of them talks."""
    from unordinal.train.distributed import joined

    with joined() as group:
        if not group.is_first:
            mute()
            sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (until the process ends)
        return main(argv)


def is_started_by_torchrun() -> bool:
    """Whether torchrun started this process, alone or with others."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_restarted() -> bool:
    """Whether torchrun started this process anew after a failure, with --max-restarts."""
    return is_started_by_torchrun() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
