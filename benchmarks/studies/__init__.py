"""Our own studies: coverage of intervals, degenerate optima, what metrics tell apart, re-ranking.

python -m benchmarks studies coverage | degenerate | distinguishability | rerank FOLDER
"""
