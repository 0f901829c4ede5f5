"""Names for what annotations of several modules share."""

import os
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Callback: TypeAlias = Callable[..., Any]
PathLike: TypeAlias = str | os.PathLike[str]


class Oracle(Protocol):
    """What solvers ask: the value of a function at w and a subgradient there."""

    @property
    def n_features(self) -> int:
        """Length of w."""
        ...

    def __call__(self, w: Array, /) -> tuple[float, Array]:
        """Value and subgradient."""
        ...
