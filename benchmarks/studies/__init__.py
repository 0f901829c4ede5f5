"""Our own studies: ``python -m benchmarks.studies coverage``, ``degenerate``,
``distinguishability``, ``rerank FOLDER``.
"""
