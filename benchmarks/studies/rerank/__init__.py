"""Re-rankers over the scores of recommenders, on people's interactions; see `docs/rerank.md`."""
