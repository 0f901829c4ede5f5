"""Runs that retrieve by relevance and noise, and the judgments of it."""

import numpy as np


def noisy_runs(spreads, n_queries, n_documents, grade=lambda r: int(r > 0.8), n_found=None, seed=0):
    """The best documents of each run, relevance + its spread * noise; grades of all relevances."""
    rng = np.random.default_rng(seed)
    runs, judged = {name: {} for name in spreads}, {}
    documents = [f"d{i:02d}" for i in range(n_documents)]
    for q in range(n_queries):
        relevance = rng.normal(size=n_documents)
        judged[f"q{q}"] = dict(zip(documents, map(grade, relevance), strict=True))
        for name, spread in spreads.items():
            score = relevance + spread * rng.normal(size=n_documents)
            found = np.argsort(-score)[:n_found]
            runs[name][f"q{q}"] = {documents[i]: float(score[i]) for i in found}
    return runs, judged
