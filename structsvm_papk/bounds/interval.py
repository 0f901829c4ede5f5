"""The result type of the intervals for a population risk."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Interval:
    """An interval for a population risk.

    Attributes
    ----------
    risk : float
        The empirical risk.
    lower, upper : float
        In [0, 1].
    level : float
        Nominal coverage.
    method : str
    guaranteed : bool
        False for asymptotic methods.
    note : str
    """

    risk: float
    lower: float
    upper: float
    level: float
    method: str
    guaranteed: bool
    note: str = ""

    @property
    def vacuous(self) -> bool:
        """True when the interval is all of [0, 1]."""
        return self.lower <= 0.0 and self.upper >= 1.0

    @property
    def half_width(self) -> float:
        """Half of the interval's length."""
        return (self.upper - self.lower) / 2

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values."""
        return asdict(self) | {"vacuous": self.vacuous, "half_width": self.half_width}
