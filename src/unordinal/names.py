"""Helpers for messages: errors for unknown names that suggest a similar known one, and counts with their noun."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

MOST_LISTED = 12  # with more known names than this, a message does not list them all


def unknown(
    what: str,
    name: str,
    known: Iterable[str],
    *,
    cutoff: float = 0.6,
    like: Mapping[str, str] | None = None,
    listed_by: str = "",
) -> ValueError:
    """Return the error for a name that is not among the known ones; it suggests the most similar known name.

    Args:
        what: what the name should be the name of, such as "split".
        name: the unknown name. Only the part before a colon is compared with the known names.
        known: the known names, as the message lists them.
        cutoff: the least similarity of a suggestion, between 0 and 1.
        like: for each known name, the text that `name` is compared with instead of the known name itself.
        listed_by: where to find the known names; shown if they are too many to list.

    Returns:
        The error, to be raised by the caller.

    >>> print(unknown("split", "tset", ("train", "val", "test")))
    unknown split 'tset'; did you mean test? (known: train, val, test)
    """
    names = list(known)
    shown = {like[known_name] if like else known_name: known_name for known_name in names}
    near = [shown[match] for match in get_close_matches(name.partition(":")[0], shown, n=1, cutoff=cutoff)]
    hint = f"; did you mean {near[0]}?" if near else ""
    rest = f" (known: {', '.join(names)})" if len(names) <= MOST_LISTED else f" ({listed_by})" if listed_by else ""
    return ValueError(f"unknown {what} {name!r}{hint}{rest}")


def check_known(what: str, name: str, known: Iterable[str]) -> None:
    """Raise a ValueError if `name` is not among the known names; see `unknown` for the arguments."""
    names = tuple(known)
    if name not in names:
        raise unknown(what, name, names)


def check_positive(name: str, value: int) -> None:
    """Raise a ValueError if the setting called `name` is below 1."""
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1, got {value}")


def counted(num: int, what: str) -> str:
    """Return a number followed by a noun, in the plural unless the number is 1.

    >>> counted(1, "sample"), counted(1200, "sample")
    ('1 sample', '1,200 samples')
    """
    return f"{num:,} {what}" if num == 1 else f"{num:,} {what}s"
