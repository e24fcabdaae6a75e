"""Words of messages: the nearest name to one that is not known, and numbers of things."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

MOST_LISTED = 12  # names that fit into a line one still reads


def unknown(
    kind: str,
    name: str,
    known: Iterable[str],
    *,
    cutoff: float = 0.6,
    like: Mapping[str, str] | None = None,
    listed_by: str = "",
) -> ValueError:
    """The error for a name that is not among the known ones; `listed_by` says what lists them where they are many.

    `like` gives what the part of the name before a colon is compared with, where that is not the known name itself.

    >>> print(unknown("split", "tset", ("train", "val", "test")))
    unknown split 'tset'; did you mean test? (known: train, val, test)
    """
    names = list(known)
    shown = {like[known_name] if like else known_name: known_name for known_name in names}
    near = [shown[match] for match in get_close_matches(name.partition(":")[0], shown, n=1, cutoff=cutoff)]
    hint = f"; did you mean {near[0]}?" if near else ""
    rest = f" (known: {', '.join(names)})" if len(names) <= MOST_LISTED else f" ({listed_by})" if listed_by else ""
    return ValueError(f"unknown {kind} {name!r}{hint}{rest}")


def check_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is not among the known ones."""
    names = tuple(known)
    if name not in names:
        raise unknown(kind, name, names)


def counted(num: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "sample"), counted(1200, "sample")
    ('1 sample', '1,200 samples')
    """
    return f"{num:,} {what}" if num == 1 else f"{num:,} {what}s"
