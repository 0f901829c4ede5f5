"""Quality on lists that were not trained on: defaults, penalties, holes, fusion, re-ranking."""
