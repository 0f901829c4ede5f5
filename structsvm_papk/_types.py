"""Names for what annotations of several modules share."""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Callback: TypeAlias = Callable[..., Any]
PathLike: TypeAlias = str | os.PathLike[str]
