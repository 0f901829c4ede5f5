"""Names for what annotations of several modules share."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from pandas import DataFrame
    from scipy.sparse import sparray, spmatrix

Array: TypeAlias = NDArray[Any]
Callback: TypeAlias = Callable[..., Any]
Matrix: TypeAlias = "Array | sparray | spmatrix"
Features: TypeAlias = "ArrayLike | sparray | spmatrix"  # X as it is given
Frame: TypeAlias = "DataFrame | Mapping[str, ArrayLike]"  # or of polars
PathLike: TypeAlias = str | os.PathLike[str]
