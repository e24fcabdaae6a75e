"""Errors that do not come from a bug: the command line shows their message without a traceback."""


class RunError(RuntimeError):
    """A failure at run time of a correct program, such as a training loss that diverges."""


class NotANumberError(RunError):
    """A class cannot be drawn because the values that determine it are NaN."""


GROUP_ENDED = "another process of the group has ended or cannot be reached"
