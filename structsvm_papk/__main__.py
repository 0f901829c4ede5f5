"""``python -m structsvm_papk`` is ``structsvm-papk``, where that is not on the path."""

import sys

from structsvm_papk.cli import main

sys.exit(main())
