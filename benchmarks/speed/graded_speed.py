"""An evaluation of four grades beside one of two labels on the same rows.

    python -m benchmarks graded_speed [--rounds 9] [--json FILE]

Lists of 100 rows with grades 0 to 4, and the same cut at grade 2; an evaluation is what a cut
takes: scores, values, slopes. Processor time, in turn, the lowest of the rounds of each; at small
weights, where every negative costs something, and at larger ones.
"""

import time

import numpy as np

from benchmarks.speed.harness import parsed, parser, save, verdict
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate

LIMIT = 1.5  # times the evaluation of two labels
SIZE = 100  # of a list
ROWS, SMALL_ROWS = 100_000, 2_000


def main():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--rounds", type=int, default=9)
    options = parsed(options, rows=SMALL_ROWS)
    rows = [
        row
        for n_features in (20, 136)
        for name in ("avg", "max", "ts")
        for row in ratios(name, n_features, options)
    ]
    save(options.json, rows)


def ratios(name, n_features, options):
    """Rows of the table: a surrogate at weights of two sizes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.rows, n_features))
    direction = rng.normal(size=n_features) / np.sqrt(n_features)
    y = np.digitize(X @ direction + rng.normal(size=options.rows), [0.5, 1.2, 1.9, 2.6])
    groups = np.arange(options.rows) // SIZE
    surrogate = make_surrogate(name, 10, 0.9)
    risks = {
        "graded": EmpiricalRisk(
            surrogate, RankingData.from_groups(X, y, groups, label_gain="linear")
        ),
        "binary": EmpiricalRisk(surrogate, RankingData.from_groups(X, y >= 2, groups)),
    }
    for size in (0.1, 2.0):
        row = {"surrogate": name, "columns": n_features, "weights": size}
        row |= lowest(risks, size * direction, options.rounds)
        row["ratio"] = row["graded"] / row["binary"]
        row["met"] = row["ratio"] <= LIMIT
        print(
            f"{name:4s} {n_features:4d} columns, weights x {size:3.1f}: {1e3 * row['graded']:6.2f} "
            f"ms, two labels {1e3 * row['binary']:6.2f} ms, x{row['ratio']:.2f}  "
            f"{verdict(row['met'])}"
        )
        yield row


def lowest(risks, w, rounds):
    """Seconds of processor time of an evaluation of each risk."""
    seconds = dict.fromkeys(risks, np.inf)
    for _ in range(rounds + 1):  # the first compiles
        for name, risk in risks.items():
            start = time.process_time()
            risk.cuts(w)
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


if __name__ == "__main__":
    main()
