"""Quality on lists that were not trained on: curves, grades, missing scores, fusion, re-ranking."""
