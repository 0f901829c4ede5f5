"""The one type of interval, for a population risk or a mean over users."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Interval:
    """A value in [0, 1] with an interval.

    Attributes
    ----------
    value : float
        As measured: a risk from `bounds`, what the table holds from `metrics`.
    lower, upper : float
    level : float
        Nominal coverage.
    method : str
    guaranteed : bool
        Whether the coverage holds for every sample size; False for asymptotic methods.
    n_users : int or None
        Users that entered; None where the interval is not about users.
    note : str
    """

    value: float
    lower: float
    upper: float
    level: float
    method: str
    guaranteed: bool
    n_users: int | None = None
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

    def __str__(self) -> str:
        of = "" if self.n_users is None else f", {self.n_users} user{'s' * (self.n_users != 1)}"
        ends = f"[{self.lower:.6g}, {self.upper:.6g}]"
        note = f"; {self.note}" if self.note else ""
        return f"{self.value:.6g} {ends} ({100 * self.level:g}% {self.method}{of}{note})"
