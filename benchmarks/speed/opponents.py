"""All solvers on four problems: how far above the optimum after so many passes, and when.

python -m benchmarks opponents [--problem NAME ..] --output benchmarks/results/opponents.md

Four problems (one list, 300 and 2,500 users, sparse) x four surrogates x three alphas. Each entry
is (best objective so far - bound) / bound in percent, the bound from a solve to 1e-8; one below 0
would be a fault. The paper's steps are those of the best of its sizes. Seconds are of the
processor: what else the machine does costs passes nothing.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy import sparse

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.rankers import compare

DEPTH = 0.5
PASSES = (10, 30, 100, 200)
SURROGATES = ("avg", "max", "ts", "pauc")
ALPHAS = (0.1, 0.01, 0.001)
SOLVERS = (
    "cutting_plane",
    "one_slack",
    "line_search",
    "dual_ascent",
    "subgradient",
    "averaged",
    "stochastic",
)
ABOUT = """# All solvers: percent above the optimum

After so many passes over the data, and, last, after as many seconds as the bundle ("cutting plane")
took: processor seconds of a machine that others use as well, so that column is noisy; passes are
not. Of the paper's descent the row is the best of its step sizes. A run ends after {seconds:g} s:
entries that it did not reach are "-". Where the optimum is 1, w = 0 is optimal. Measured by
`{command}`."""


@dataclass(frozen=True)
class Problem:
    """Lists of equal length, and whether 2,000 rare columns stand beside theirs."""

    n_users: int
    n_items: int
    n_features: int
    k: int
    sparse: bool = False

    def data(self, small):
        """The lists, a tenth of them for a try."""
        divisor = 10 if small else 1
        n_items = self.n_items // divisor if self.n_users == 1 else self.n_items
        n_users = max(self.n_users // divisor, 1)
        lists = linear_lists(n_users, n_items, self.n_features, noise=0.5, seed=0)
        X = lists.X
        if self.sparse:
            rng = np.random.default_rng(0)
            beside = sparse.random(X.shape[0], 2000, 0.01, format="csr", random_state=rng)
            X = sparse.hstack([sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0)), beside], "csr")
        return RankingData.from_groups(X, lists.y, lists.groups)

    @property
    def shape(self):
        """In words."""
        of_lists = f"{self.n_users:,} x {self.n_items:,} items x {self.n_features} features"
        more = ", and 2,000 of which a row has 1%" if self.sparse else ""
        return f"{of_lists}{more}, k = {self.k}"


PROBLEMS = {
    "one list": Problem(1, 20_000, 30, 10),
    "300 users": Problem(300, 60, 30, 10),
    "2,500 users": Problem(2500, 20, 10, 3),
    "sparse": Problem(2500, 20, 10, 3, sparse=True),
}


def main():
    """Solve, and write a table for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", action="append", choices=PROBLEMS, help="repeat for more")
    parser.add_argument("--surrogate", action="append", choices=SURROGATES)
    parser.add_argument("--seconds", type=float, default=3.0, help="of the processor, for each run")
    parser.add_argument("--output", type=Path, help="the page; by default it is printed")
    parser.add_argument("--small", action="store_true", help="for a try")
    options = parser.parse_args()
    command = "python -m benchmarks opponents"
    page = [ABOUT.format(seconds=options.seconds, command=command)]
    for name in options.problem or PROBLEMS:
        problem = PROBLEMS[name]
        data = problem.data(options.small).standardized()
        page += [f"\n## {name}: {problem.shape}\n", head(), "|---" * (6 + len(PASSES)) + "|"]
        for surrogate in options.surrogate or SURROGATES:
            for alpha in ALPHAS:
                with patch("time.perf_counter", time.process_time):
                    rows = list(rows_of(data, surrogate, problem.k, alpha, options.seconds))
                page += rows
                print(name, *rows, sep="\n", flush=True)
    text = "\n".join(page) + "\n"
    if options.output is not None:
        options.output.write_text(text)


def head():
    """The first line of a table."""
    passes = " | ".join(f"{n} passes" for n in PASSES)
    return f"| surrogate | alpha | optimum | solver | {passes} | bundle's seconds | ends |"


def rows_of(data, surrogate, k, alpha, seconds):
    """A row for each solver on one surrogate at one alpha."""
    risk = EmpiricalRisk(make_surrogate(surrogate, k, depth=DEPTH), data, "cap")
    bound = CuttingPlane(alpha, tol=1e-8, max_iter=2000, time_limit=60).solve(risk).lower_bound
    settings = {"solvers": SOLVERS, "depth": DEPTH, "passes": PASSES[-1], "seconds": seconds}
    runs = compare(data, [surrogate], k, alpha, standardize=False, **settings)
    of_bundle = runs[0].result.seconds
    for run in runs:
        result = run.result
        entries = [percent(result, "data_passes", n, bound) for n in PASSES]
        entries.append(percent(result, "seconds", of_bundle, bound))
        entries.append(str(result.status))
        yield f"| {surrogate} | {alpha:g} | {bound:.4g} | {run.label} | {' | '.join(entries)} |"


def percent(result, effort, spent, bound):
    """How far the best weights are above the bound when so much was spent, in percent."""
    efforts = result.curve(effort)
    reached = np.flatnonzero(efforts <= spent)
    if not reached.size or (not ended(result) and efforts[-1] < spent):
        return "-"
    best = result.curve("objective")[: reached[-1] + 1].min()
    above = round(100.0 * (best - bound) / bound, 7) + 0.0  # -0 is 0
    return f"{above:.0f}" if above >= 10.0 else f"{above:.2g}"


def ended(result):
    """Whether a run ended by itself: then its last weights count for all later efforts."""
    return result.converged


if __name__ == "__main__":
    main()
