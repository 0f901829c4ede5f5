"""Measurements of the package, and what only a reader of the paper runs; see `docs/benchmarks.md`.

`paper` has the paper's tables and figure, `studies` our own; both import supported names only.
"""
