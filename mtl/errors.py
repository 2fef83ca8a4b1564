"""Every error a user can cause, each with the exit code the command line answers it by.

A message says what is wrong, where, and how to mend it; it is printed without a traceback.
"""


class MtlError(Exception):
    """A failure that the message explains in full; exit code 1 unless a subclass says otherwise.

    ``reported_elsewhere``: another rank of the run ends with the same message and tells the user.
    """

    exit_code = 1
    reported_elsewhere = False


class ConfigError(MtlError):
    """A configuration or command line that cannot be meant; exit code 2."""

    exit_code = 2


class DataError(MtlError):
    """Data or a model is missing, or is not what it says it is; exit code 3."""

    exit_code = 3


class NonFiniteError(MtlError):
    """A loss, a gradient or a metric is NaN or infinite; exit code 4."""

    exit_code = 4


class StoppedError(MtlError):
    """A signal ended the run at an update boundary, a checkpoint saved; exit code 75, or 130 after Ctrl-C."""

    def __init__(self, message: str, *, interrupted_by_user: bool = False) -> None:
        super().__init__(message)
        self.exit_code = 130 if interrupted_by_user else 75


class LostRankError(MtlError):
    """Another process of a run on several ranks has died or cannot be reached."""


class RelayedError(MtlError):
    """What another rank has raised and reports; this process ends with the same exit code."""

    reported_elsewhere = True

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
