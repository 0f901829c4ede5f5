"""A fit with pairs of columns beside fits without, on many rows.

    python -m benchmarks pairs_speed [--rows 400000] [--rounds 3] [--json FILE]

Lists of 20 rows with ten normal columns; six pairs of them act together. Processor time of whole
fits with lines, with curves, and with curves and 20 pairs, in turn, the lowest of the rounds of
each.
"""

import time

import numpy as np

from benchmarks.speed.harness import parsed, parser, save, verdict
from structsvm_papk import PAPKRanker

LIMIT = 1.5  # times the fit of curves without pairs
SIZE = 20  # of a list
N_COLUMNS = 10
PRODUCTS = {(0, 1): 0.8, (2, 3): 0.6, (4, 5): 0.5, (1, 6): 0.5, (7, 8): 0.4, (0, 9): 0.4}
RELEVANT = 0.2
ROWS, SMALL_ROWS = 400_000, 4_000
FITS = {
    "lines": {"curves": None, "pairs": None},
    "curves": {"curves": 16, "pairs": None},
    "20 pairs": {"curves": 16, "pairs": 20},
}


def main():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--rounds", type=int, default=3)
    options = parsed(options, rows=SMALL_ROWS)
    for settings in FITS.values():
        fitted(settings, *lists(SMALL_ROWS))  # compiles
    rows = {name: {"fit": name, "seconds": np.inf} for name in FITS}
    table = lists(options.rows)
    for _ in range(options.rounds):
        for name, settings in FITS.items():
            rows[name] |= quickest(rows[name], fitted(settings, *table))
    for row in rows.values():
        row["ratio"] = row["seconds"] / rows["curves"]["seconds"]
        print(
            f"{row['fit']:8s} {row['seconds']:6.2f} s, {row['passes']:3d} passes, "
            f"x{row['ratio']:.2f} of curves"
        )
    paired = rows["20 pairs"]
    paired["met"] = paired["ratio"] <= LIMIT
    print(f"20 pairs at most {LIMIT} times curves: {verdict(paired['met'])}")
    save(options.json, list(rows.values()))


def lists(n_rows):
    """X, relevance and lists of rows of which some columns act together."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    score = X @ (rng.normal(size=N_COLUMNS) / 2) + np.abs(X[:, 2]) / 2
    for (one, other), weight in PRODUCTS.items():
        score += weight * X[:, one] * X[:, other]
    score += rng.logistic(size=n_rows)
    return X, score > np.quantile(score, 1 - RELEVANT), np.arange(n_rows) // SIZE


def fitted(settings, X, y, groups):
    """Processor seconds of a fit, and its passes over all rows."""
    start = time.process_time()
    ranker = PAPKRanker(k=10, **settings).fit(X, y, groups=groups)
    return {
        "seconds": time.process_time() - start,
        "passes": ranker.result_.data_passes,
        "objective": ranker.result_.objective,
    }


def quickest(one, other):
    return other if other["seconds"] < one["seconds"] else one


if __name__ == "__main__":
    main()
