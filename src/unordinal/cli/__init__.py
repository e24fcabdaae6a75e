"""The command line: COMMANDS, and what every command shares."""

import io
import os
import signal
import sys
from collections.abc import Callable, Sequence

from unordinal import console
from unordinal.cli import (
    bench,
    bits,
    catalogue,
    compare,
    correct,
    demo,
    evaluate,
    export,
    fill,
    runs,
    sample,
    serve,
    train,
)
from unordinal.cli.common import as_flags
from unordinal.cli.together import TOGETHER, is_first_of_another_machine, is_started_by_torchrun, run_together
from unordinal.console import say
from unordinal.errors import GROUP_ENDED, RunError
from unordinal.names import unknown

COMMANDS: dict[str, tuple[str, Callable[[list[str]], int]]] = {
    "demo": ("see what the models in the box can do, then train two small ones: about four minutes", demo.main),
    "correct": ('correct mistyped letters: unordinal correct "a sentense"', correct.main),
    "fill": ('fill the gaps of a text: unordinal fill "the ____ of the city"', fill.main),
    "bits": ("find the surprising lines of a text: unordinal bits letters.txt", bits.main),
    "serve": ("open a page to play with: unordinal serve", serve.main),
    "train": ("train a model on your data: unordinal train arm --data book.txt --minutes 5", train.main),
    "evaluate": (
        "score a run, in bits with standard error: unordinal evaluate RUN",
        evaluate.main,
    ),
    "sample": ("draw from a run: unordinal sample RUN --num 4", sample.main),
    "compare": ("compare two runs on the same examples: unordinal compare RUN RUN", compare.main),
    "runs": ("list the runs in a folder: unordinal runs", runs.main),
    "export": ("write a run's network to an ONNX file: unordinal export RUN model.onnx", export.main),
    "bench": ("measure how long samples take: unordinal bench sampling --size small", bench.main),
    "presets": ("list the models, and the experiments of the paper", catalogue.presets_main),
    "data": ("list data sets, or describe one: unordinal data book.txt", catalogue.data_main),
}


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (text, _) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: unordinal COMMAND [...]",
            "",
            "Generative models of categorical data: train, score, sample.",
            "",
            "commands:",
            *lines,
            "",
            "`unordinal COMMAND --help` says more; `--debug` anywhere shows tracebacks; `--max-bytes N` anywhere lets "
            "compressed data unpack to N bytes.",
        ]
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the `unordinal` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that lacks a sign shows another, not an error
        sys.stdout.reconfigure(errors="replace")
    code = run(list(sys.argv[1:] if argv is None else argv))
    if is_started_by_torchrun():  # threads of the group may abort an orderly end of the interpreter; all is written
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(argv: list[str]) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 bad input, 128 + n stopped by a signal."""
    debug = "--debug" in argv
    argv = [word for word in argv if word != "--debug"]
    try:
        argv = with_limit(argv)
        code = chosen(argv)
        sys.stdout.flush()  # here, where a reader that has gone is no surprise
        return code
    except KeyboardInterrupt:
        return complain("interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:  # the reader, `head` say, has gone
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


def with_limit(argv: list[str]) -> list[str]:
    """Set the limit on what compressed data may unpack to, if the words do, and return the other words."""
    words = [part for word in argv for part in (word.split("=", 1) if word.startswith("--max-bytes=") else [word])]
    if "--max-bytes" not in words:
        return argv
    from unordinal.data.unpacking import allow_unpacking

    place = words.index("--max-bytes")
    given = "".join(words[place + 1 : place + 2])
    if not given.isdecimal() or len(given) > 18:
        raise ValueError(f"--max-bytes takes a number of bytes, got {given!r}")
    allow_unpacking(int(given))
    return words[:place] + words[place + 2 :]


def chosen(argv: list[str]) -> int:
    """Run the command that the words begin with."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if argv[0] in ("-V", "--version"):
        from unordinal import __version__

        print(f"unordinal {__version__}")
        return 0
    if argv[0] not in COMMANDS:
        raise unknown("command", argv[0], COMMANDS)
    main = COMMANDS[argv[0]][1]
    if argv[0] in TOGETHER and is_started_by_torchrun():
        return run_together(main, argv[1:])
    return main(argv[1:])


def complain(message: str, code: int) -> int:
    """One line on standard error.

    Where several processes run a command the first one says it; another one says only what it may be alone with.
    """
    line = as_flags(" ".join(message.split()))
    if not console.is_muted:
        say(f"unordinal: {line}")
    elif (code == 1 or is_first_of_another_machine()) and GROUP_ENDED not in message:
        print(f"unordinal: process {os.environ['RANK']}: {line}", file=sys.stderr)
    return code
