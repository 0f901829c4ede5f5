"""Re-rankers over the scores of recommenders, on people's interactions; see `benchmarks/results/rerank.md`."""
