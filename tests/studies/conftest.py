"""The studies are run from a clone, beside the package, and are no part of it."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
