"""Whole solves with and without row skipping: rows scored and seconds, as ratios.

    python -m benchmarks row_skipping [--repeats 3] [--json FILE]

One thread. Every pair of solves runs in turn, the fastest of the repeats counts; the first line is
one user with 1,000,000 negatives and 50 features.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists

ENOUGH = 15.0  # seconds after which nothing is repeated
SURROGATES = ("avg", "max", "ts", "pauc")


def one_user(n_neg=1_000_000, n_pos=500, d=50, noise=0.1, correlated=False, dtype=float, seed=0):
    """The rows with the highest noisy linear scores are relevant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_neg + n_pos, d)).astype(dtype, copy=False)
    if correlated:
        X += 3.0 * rng.standard_normal((len(X), 1))
        X *= np.geomspace(0.1, 10.0, d)
    w = rng.standard_normal(d)
    scores = X @ w.astype(dtype)
    scores += noise * scores.std() * rng.standard_normal(len(X))
    y = np.zeros(len(X), dtype=bool)
    y[np.argpartition(-scores, n_pos)[:n_pos]] = True
    return RankingData.from_groups(X, y)


def many_users(n_users, n_items, noise, share):
    lists = linear_lists(n_users, n_items, 50, noise, relevant_share=share)
    return RankingData.from_groups(lists.X, lists.y, lists.groups)


def sparse_user(n_rows=300_000, d=500, per_row=50, n_pos=500, seed=0):
    rng = np.random.default_rng(seed)
    columns = (d * rng.random((n_rows, per_row)) ** 3).astype(np.int32)  # some features are common
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sparse.csr_array((rng.random(n_rows * per_row), columns.ravel(), indptr), (n_rows, d))
    X.sum_duplicates()
    scores = X @ rng.standard_normal(d)
    y = np.zeros(n_rows, dtype=bool)
    y[np.argpartition(-scores, n_pos)[:n_pos]] = True
    return RankingData.from_groups(X, y)


TASKS = {  # data, k, alpha, gap
    "1 user x 1,000,000 x 50": (one_user, 100, 1e-3, 1e-6),
    "the same, float32": (lambda: one_user(dtype=np.float32), 100, 1e-3, 1e-6),
    "the same, correlated, scales .1 to 10": (lambda: one_user(correlated=True), 100, 1e-3, 1e-6),
    "1 user x 300,000 x 500, 50 non-zeros": (sparse_user, 100, 1e-1, 1e-3),
    "100 users x 10,000 x 50": (lambda: many_users(100, 10_000, 0.1, 0.005), 20, 1e-3, 1e-6),
    "500 users x 1,000 x 50": (lambda: many_users(500, 1000, 0.1, 0.02), 10, 1e-3, 1e-6),
    "5,000 users x 200 x 50": (lambda: many_users(5000, 200, 0.2, 0.05), 5, 1e-3, 1e-6),
}

SPARSE = 3  # slow, and one surrogate shows what there is to see


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(range(len(TASKS))), type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    lines = []
    for number in options.only:
        task, (make, k, alpha, tol) = list(TASKS.items())[number]
        data = make()
        print(f"{task}, k = {k}, alpha = {alpha:g}", flush=True)
        for name in SURROGATES if number != SPARSE else ("avg",):
            lines.append({"task": task, "surrogate": name, "k": k, "alpha": alpha})
            lines[-1] |= measured(make_surrogate(name, k), data, alpha, tol, options.repeats)
            print(LINE.format(**lines[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(lines, indent=1) + "\n")


LINE = (
    "  {surrogate:5s} {status:10s} gap {gap:.0e}  passes {passes:4d}  {seconds_plain:7.2f} s -> "
    "{seconds:6.2f} s, ratio {time_ratio:.2f}  row visits {visit_ratio:.3f}"
)


def measured(surrogate, data, alpha, tol, repeats):
    risks = {skip: EmpiricalRisk(surrogate, data, skip_rows=skip) for skip in (False, True)}
    for risk in risks.values():  # compiled code is loaded
        CuttingPlane(alpha, max_iter=3).solve(risk)
    best = {False: np.inf, True: np.inf}
    began = time.perf_counter()
    for _ in range(repeats):
        if time.perf_counter() - began > ENOUGH:
            break
        results = {}
        for skip, risk in risks.items():
            start = time.perf_counter()
            results[skip] = CuttingPlane(alpha, tol=tol).solve(risk)
            best[skip] = min(best[skip], time.perf_counter() - start)
    plain, ours = results[False], results[True]
    scale = max(plain.objective, 1e-3)
    assert abs(ours.objective - plain.objective) <= 2 * max(plain.gap, ours.gap) * scale
    visits = [result.history[-1].rows_scored for result in (plain, ours)]
    return {
        "status": str(ours.status),
        "gap": ours.gap,
        "passes": ours.data_passes,
        "passes_plain": plain.data_passes,
        "seconds_plain": best[False],
        "seconds": best[True],
        "time_ratio": best[True] / best[False],
        "rows_scored": visits[1],
        "visit_ratio": visits[1] / visits[0],
    }


if __name__ == "__main__":
    main()
