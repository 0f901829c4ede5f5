"""What is read and written: lists in tables, svmlight, runs and judgments; models; checkpoints.

A file that is written is complete or absent: it is written beside its place and renamed. What is
read is checked, never executed, and refused with file and line. Data larger than memory are
sources, cut into partitions. May import `data`, and the results of `solvers`.
"""

from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.files.model import load_model
from structsvm_papk.files.partitions import open_source

__all__ = [
    "Checkpoint",
    "load_model",
    "open_source",
]
