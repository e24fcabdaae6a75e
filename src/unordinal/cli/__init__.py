"""The command line: COMMANDS, and what every command shares."""

import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from unordinal import console
from unordinal.cli import parsing
from unordinal.cli.common import as_flags
from unordinal.cli.together import TOGETHER, is_first_of_another_machine, is_started_by_torchrun, run_together
from unordinal.cli.words import EVERYWHERE, Words, split
from unordinal.console import say
from unordinal.errors import GROUP_ENDED, RunError
from unordinal.names import unknown

COMMANDS: dict[str, str] = {
    "demo": "see what the bundled models can do, then train two small ones: about four minutes",
    "correct": 'correct mistyped letters: unordinal correct "a sentense"',
    "fill": 'fill the gaps of a text: unordinal fill "the ____ of the city"',
    "bits": "find the surprising lines of a text, or rows of a table: unordinal bits letters.txt",
    "compress": "compress a file with a model's own probabilities: unordinal compress book.txt",
    "decompress": "restore a compressed file: unordinal decompress book.txt.un",
    "predict": "predict a column of a table: unordinal predict RUN people.csv --column income",
    "classify": "find the labels of examples by Bayes' rule: unordinal classify RUN names.txt",
    "report": "compare a synthetic table with the real one: unordinal report people.csv new.csv",
    "serve": "open a page to play with: unordinal serve",
    "train": "train a model on your data: unordinal train arm --data book.txt --minutes 5",
    "evaluate": "score a run, in bits with standard error: unordinal evaluate RUN",
    "sample": "draw from a run: unordinal sample RUN --num 4",
    "compare": "compare two runs on the same examples: unordinal compare RUN RUN",
    "runs": "list the runs in a folder: unordinal runs",
    "export": "write a run's network to an ONNX file: unordinal export RUN model.onnx",
    "reproduce": "reproduce the paper's tables: unordinal reproduce list",
    "bench": "measure how long samples take: unordinal bench sampling --size small",
    "presets": "list the models, and the experiments of the paper",
    "data": "list data sets, or describe one: unordinal data book.txt",
}
"""The commands, each with a line for the help. The command NAME is `main` of cli/NAME.py."""

USAGE = """usage: unordinal COMMAND [...]

Generative models of categorical data: train, score, sample.

commands:
{commands}

`unordinal COMMAND --help` says more; `--debug` anywhere shows tracebacks;
`--max-bytes N` anywhere lets compressed data unpack to N bytes."""


def usage() -> str:
    """Return the help of the whole command line."""
    width = max(map(len, COMMANDS))
    return USAGE.format(commands="\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the `unordinal` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that lacks a character shows another one, not an error
        sys.stdout.reconfigure(errors="replace")
    code = run(sys.argv[1:] if argv is None else argv)
    if is_started_by_torchrun():  # threads of the group may abort an orderly end of the interpreter; all is written
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(argv: Sequence[str]) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 bad input, 128 + n stopped by a signal."""
    words = split(argv)
    debug = words.has("--debug")
    try:
        limit_unpacking(words)
        code = run_command(words)
        sys.stdout.flush()  # here, where a closed pipe is caught
        return code
    except KeyboardInterrupt:
        return complain("interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + getattr(signal, "SIGPIPE", 13)
    except (ValueError, OSError) as error:
        if debug:
            raise
        return complain(str(error), 2)
    except Exception as error:
        if debug:
            raise
        known = isinstance(error, RunError)
        return complain(str(error) if known else f"{type(error).__name__}: {error} (--debug shows where)", 1)


def limit_unpacking(words: Words) -> None:
    """Set the limit on what compressed data may unpack to, if --max-bytes is given."""
    if not words.has("--max-bytes"):
        return
    from unordinal.data.unpacking import allow_unpacking

    given = words.value("--max-bytes") or ""
    if not given.isdecimal() or len(given) > 18:
        raise ValueError(f"--max-bytes takes a number of bytes, got {given!r}")
    allow_unpacking(int(given))


def run_command(words: Words) -> int:
    """Run the command that the words begin with."""
    extra = [rest for name, after in words.groups if name in EVERYWHERE for rest in after[name == "--max-bytes" :]]
    words = Words((*words.plain, *extra), words.groups).without(0, *EVERYWHERE)
    if words.plain[:1] == () and words.has("-V", "--version"):
        from unordinal import __version__

        print(f"unordinal {__version__}")
        return 0
    if not words.plain:
        print(usage())
        return 0
    name = words.plain[0]
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    main, rest = import_module(f"unordinal.cli.{name}").main, words.without(1)
    return run_together(main, rest) if name in TOGETHER and is_started_by_torchrun() else main(rest)


def complain(message: str, code: int) -> int:
    """Print one line on standard error and return the exit code.

    If several processes run a command, rank 0 prints it; another rank prints only what rank 0 may not know.
    """
    line = as_flags(" ".join(message.split()), frozenset(parsing.known_flags))
    if not console.is_muted:
        say(f"unordinal: {line}")
    elif (code == 1 or is_first_of_another_machine()) and GROUP_ENDED not in message:
        print(f"unordinal: process {os.environ['RANK']}: {line}", file=sys.stderr)
    return code
