"""The words of a command line, walked once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

OPTION = re.compile(r"--[a-zA-Z]|-h$|-V$")
HELP = ("-h", "--help", "--help-all")
EVERYWHERE = ("--debug", "--max-bytes")  # options of every command


@dataclass(frozen=True)
class Words:
    """A command line as groups: the words before the first option, then each option with the words after it."""

    plain: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]

    def value(self, *names: str) -> str | None:
        """Return the first word after an option; None if the option is not given or has no value."""
        return next((words[0] for name, words in self.groups if name in names and words), None)

    def has(self, *names: str) -> bool:
        """Return whether one of some options is given."""
        return any(name in names for name, _ in self.groups)

    def without(self, num_plain: int, *names: str) -> "Words":
        """Return the words without the first plain ones, and without some options."""
        left = tuple((name, words) for name, words in self.groups if name not in names)
        return Words(self.plain[num_plain:], left)

    @property
    def all_plain(self) -> tuple[str, ...]:
        """All words that are not options, some of which are values of options."""
        return self.plain + tuple(word for _, words in self.groups for word in words)


def split(argv: Sequence[str]) -> Words:
    """Split a command line into groups.

    >>> split(["train", "arm", "--data=a=b.txt", "--resume", "--lr", "-1"])
    Words(plain=('train', 'arm'), groups=(('--data', ('a=b.txt',)), ('--resume', ()), ('--lr', ('-1',))))
    """
    plain: list[str] = []
    groups: list[tuple[str, list[str]]] = []
    for word in argv:
        if OPTION.match(word):
            name, is_assigned, value = word.partition("=")
            groups.append((name.replace("_", "-"), [value] if is_assigned else []))
        elif groups:
            groups[-1][1].append(word)
        else:
            plain.append(word)
    return Words(tuple(plain), tuple((name, tuple(words)) for name, words in groups))
