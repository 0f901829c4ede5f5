"""Our own studies: bounds, degenerate optima, metrics, what losses aim at, re-ranking.

python -m benchmarks studies coverage | stability | degenerate | distinguishability | ndcg |
                             targets | rerank FOLDER
"""
