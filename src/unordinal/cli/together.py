"""Commands that several processes can share, started by `torchrun -m unordinal COMMAND ...`."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

from unordinal.cli.words import Words
from unordinal.console import mute

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
TOGETHER = ("train", "evaluate", "sample")


def run_together(main: Callable[[Words], int], words: Words) -> int:
    """Join the other processes and run a command; only rank 0 prints."""
    from unordinal.parallel.group import joined

    end_with_torchrun()
    with joined() as group:
        if not group.is_first:
            mute()
            sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (until the process ends)
        return main(words)


def end_with_torchrun() -> None:
    """Ask the kernel for a SIGTERM when torchrun dies, so that no process waits for others that have ended.

    In training SIGTERM saves first. Only Linux offers this.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() == 1:  # it has died already
            os.kill(os.getpid(), signal.SIGTERM)


def is_started_by_torchrun() -> bool:
    """Whether torchrun started this process, alone or with others."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_restarted() -> bool:
    """Whether torchrun started this process again after a failure, with --max-restarts."""
    return is_started_by_torchrun() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


def is_first_of_another_machine() -> bool:
    """Whether this is the first process of a machine, but not of all of them."""
    return os.environ.get("LOCAL_RANK") == "0" and os.environ.get("RANK", "0") != "0"
