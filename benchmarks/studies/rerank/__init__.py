"""Re-rankers over the scores of recommenders, on people's interactions; `results/rerank.md`."""
