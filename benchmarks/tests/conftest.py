"""Lets the tests of this folder import the benchmarks, which are no part of the package."""

import sys
from pathlib import Path

# at the end: the package is the one that is installed
sys.path.append(str(Path(__file__).resolve().parents[2]))
