"""Which tests run where."""

import math
import os
import sys

import pytest

PROPERTY_FACTOR = float(os.environ.get("PROPERTY_FACTOR", "0.34"))  # 1 in .ci/run
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")


def some_of(n):
    """How many of `n` random problems are tried: a third every day, all with PROPERTY_FACTOR=1."""
    return math.ceil(n * min(PROPERTY_FACTOR, 1))


def slow(*values):
    """Values of parameters that the everyday run leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow)
