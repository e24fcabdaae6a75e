"""Errors that are nobody's bug: the message is all that a person needs."""


class RunError(RuntimeError):
    """Something that a correct program met while it ran: a loss that diverged, samples that cannot be had."""


class NotANumberError(RunError):
    """A computation has given NaN where a class was to be chosen."""
