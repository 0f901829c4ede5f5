"""Measurements of the package, and what only a reader of the paper runs; see `docs/benchmarks.md`.

A folder is a group of `python -m benchmarks`: `speed`, over one harness, `quality`, `certificate`,
`paper` with the paper's tables and figure, `studies` with our own; the last two import supported
names only. `common` is what groups share, `results` what was measured, `tests` are run by `pytest
-m study`.
"""
