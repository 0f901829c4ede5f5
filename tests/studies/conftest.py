"""The studies are run from a clone, beside the package, and are no part of it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT), str(ROOT / "benchmarks" / "solvers_benchopt")]
