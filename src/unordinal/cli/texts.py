"""Read and print the text of commands that work on a text."""

import sys
from pathlib import Path

STRONG, FAINT, RESET = "\x1b[1;32m", "\x1b[2;9;31m", "\x1b[0m"
MOST_BYTES = 16 << 20  # of a text that is read


def given_text(text: str | None, file: Path | None) -> str:
    """Return the text that was given as an argument, in a file, or on standard input."""
    if text is not None and file is not None:
        raise ValueError("give the text or --file, not both")
    if text is not None:
        return text
    if file is None and sys.stdin.isatty():
        raise ValueError('give a text, as in "a sentense", or --file, or send one to standard input')
    try:
        raw = sys.stdin.buffer.read(MOST_BYTES + 1) if file is None else read_file(file)
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}") from error
    if len(raw) > MOST_BYTES:
        raise ValueError(f"the text is larger than {MOST_BYTES >> 20} MB; cut it into parts")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = "standard input" if file is None else str(file)
        raise ValueError(f"{where} is not UTF-8 text: byte {raw[error.start]:#04x} at {error.start}") from error


def read_file(file: Path) -> bytes:
    with file.expanduser().open("rb") as handle:
        return handle.read(MOST_BYTES + 1)


def print_text(text: str) -> None:
    """Print a text to standard output as it is, in UTF-8, without another end of line."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
        return
    buffer.write(text.encode("utf-8"))
    buffer.flush()
