"""`python -m unordinal`, and what the `unordinal` script calls."""

import sys


def main() -> None:
    """The command line, imported late so that even a Ctrl-C during the imports ends in one line."""
    try:
        from unordinal.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.exit("unordinal: interrupted")


if __name__ == "__main__":
    main()
