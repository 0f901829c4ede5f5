"""Whole solves with and without row skipping: rows scored and seconds, as ratios.

    python -m benchmarks row_skipping [--repeats 3] [--only N ..] [--json FILE]

Every pair of solves runs in turn; the first line is one user with 1,000,000 negatives and 50
features.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.speed.data import csr_of, popular_columns
from benchmarks.speed.harness import in_turns, parser, save
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
    return with_highest(X, scores, n_pos)


def many_users(n_users, n_items, noise, share):
    lists = linear_lists(n_users, n_items, 50, noise, relevant_share=share)
    return RankingData.from_groups(lists.X, lists.y, lists.groups)


def sparse_user(n_rows=300_000, d=500, per_row=50, n_pos=500, seed=0):
    rng = np.random.default_rng(seed)
    columns = popular_columns(rng, n_rows, per_row, d)
    X = csr_of(rng.random(n_rows * per_row), columns, d)
    return with_highest(X, X @ rng.standard_normal(d), n_pos)


def with_highest(X, scores, n_pos):
    """One list, of which the rows with the highest scores are relevant."""
    y = np.zeros(X.shape[0], dtype=bool)
    y[np.argpartition(-scores, n_pos)[:n_pos]] = True
    return RankingData.from_groups(X, y)


@dataclass(frozen=True)
class Task:
    """What is solved, and how closely."""

    make: Callable[[], RankingData]
    k: int
    alpha: float = 1e-3
    tol: float = 1e-6
    surrogates: tuple[str, ...] = SURROGATES


TASKS = {
    "1 user x 1,000,000 x 50": Task(one_user, 100),
    "the same, float32": Task(lambda: one_user(dtype=np.float32), 100),
    "the same, correlated, scales .1 to 10": Task(lambda: one_user(correlated=True), 100),
    # slow, and one surrogate shows what there is to see
    "1 user x 300,000 x 500, 50 non-zeros": Task(sparse_user, 100, 1e-1, 1e-3, ("avg",)),
    "100 users x 10,000 x 50": Task(lambda: many_users(100, 10_000, 0.1, 0.005), 20),
    "500 users x 1,000 x 50": Task(lambda: many_users(500, 1000, 0.1, 0.02), 10),
    "5,000 users x 200 x 50": Task(lambda: many_users(5000, 200, 0.2, 0.05), 5),
}
SMALL = {"5 users x 200 x 50": Task(lambda: many_users(5, 200, 0.1, 0.1), 5)}


def main():
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--only", nargs="+", type=int, help="these tasks alone, from 0 on")
    options = options.parse_args()
    tasks = list((SMALL if options.small else TASKS).items())
    if options.only:
        tasks = [tasks[number] for number in options.only]
    rows = []
    for name, task in tasks:
        data = task.make()
        print(f"{name}, k = {task.k}, alpha = {task.alpha:g}")
        for surrogate in task.surrogates:
            row = {"task": name, "surrogate": surrogate, "k": task.k, "alpha": task.alpha}
            rows.append(row | measured(make_surrogate(surrogate, task.k), data, task, options))
            print(LINE.format(**rows[-1]))
            save(options.json, rows)


LINE = (
    "  {surrogate:5s} {status:10s} gap {gap:.0e}  passes {passes:4d}  {seconds_plain:7.2f} s -> "
    "{seconds:6.2f} s, ratio {time_ratio:.2f}  row visits {visit_ratio:.3f}"
)


def measured(surrogate, data, task, options):
    risks = {
        "plain": EmpiricalRisk(surrogate, data, skip_rows=False),
        "skipping": EmpiricalRisk(surrogate, data),
    }
    for risk in risks.values():  # compiled code is loaded
        CuttingPlane(task.alpha, max_iter=3).solve(risk)
    solver = CuttingPlane(task.alpha, tol=task.tol)
    solves = {name: lambda risk=risk: solver.solve(risk) for name, risk in risks.items()}
    best = in_turns(solves, options.repeats, ENOUGH)
    plain = best["plain"].result
    ours = best["skipping"].result
    scale = max(plain.objective, 1e-3)
    assert abs(ours.objective - plain.objective) <= 2 * max(plain.gap, ours.gap) * scale
    return {
        "status": str(ours.status),
        "gap": ours.gap,
        "passes": ours.data_passes,
        "passes_plain": plain.data_passes,
        "seconds_plain": best["plain"].seconds,
        "seconds": best["skipping"].seconds,
        "time_ratio": best["skipping"].seconds / best["plain"].seconds,
        "rows_scored": ours.history[-1].rows_scored,
        "visit_ratio": ours.history[-1].rows_scored / plain.history[-1].rows_scored,
    }


if __name__ == "__main__":
    main()
