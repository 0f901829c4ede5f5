"""The package's own errors and warnings."""


class InputError(ValueError):
    """Input that cannot be used; the message says what is wrong, where, and what to do."""


class DegenerateOptimumWarning(UserWarning):
    """The exact minimiser is the zero vector: the surrogate has nothing to say about this data."""
