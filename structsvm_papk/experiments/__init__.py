"""Experiments: the paper's tables and figures, and studies of our own."""
