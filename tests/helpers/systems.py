"""What not every system has."""

import sys

import pytest

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")
