"""Files that are complete or absent: models, checkpoints, tensors, fingerprints."""
