"""Which tests run where."""

import sys

import pytest

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")


def slow(*values):
    """Values of parameters that the everyday run leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow)
