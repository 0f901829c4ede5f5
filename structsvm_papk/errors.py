"""The package's own errors and warnings."""


class InputError(ValueError):
    """Input that cannot be used; the message says what is wrong, where, and what to do."""


class OracleFailure(RuntimeError):
    """The risk cannot be evaluated any more, through no fault of its input.

    An oracle raises it, with the reason as its message, when what it depends on is gone: its
    workers, its files. Solvers then return the best point so far.
    """


class DegenerateOptimumWarning(UserWarning):
    """The exact minimiser is the zero vector: the surrogate has nothing to say about this data."""
