"""Files that are complete or absent: models, checkpoints, tensors, fingerprints.

They are written beside their place and renamed; what is read is checked and never executed. May
import the results of `solvers`; knows nothing of rankings.
"""

from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.files.model import Model, load_model

__all__ = ["Checkpoint", "Model", "load_model"]
