"""The bound by stability on generated lists, beside the risk of new users.

Lists of 60 items with 10 features, `linear_lists` with noise .5 and one common truth; k = 5, depth
.9 or k, solved to a gap of 1e-6; 5,000 new users.
"""

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, bounds, make_surrogate, metrics
from structsvm_papk.datasets import linear_lists

K = 5
_SHAPE = {"n_items": 60, "n_features": 10, "noise": 0.5}


def rows(sizes, alphas, surrogates=("avg",), depths=(0.9, None), n_new=5000):
    """A dict for each number of users, surrogate, depth and alpha."""
    truth = linear_lists(2, **_SHAPE, seed=0).w_true
    new = linear_lists(n_new, **_SHAPE, w_true=truth, seed=1)
    for n_users in sizes:
        lists = linear_lists(n_users, **_SHAPE, w_true=truth, seed=2)
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        for name in surrogates:
            for depth in depths:
                risk = EmpiricalRisk(make_surrogate(name, K, depth), data)
                for alpha in alphas:
                    result = CuttingPlane(alpha=alpha, tol=1e-6).solve(risk)
                    found = bounds.stability(risk, result)
                    table = metrics.evaluate(f"pap@{K}", new.X @ result.w, new.y, new.groups)
                    yield {
                        "n_users": n_users, "surrogate": name, "depth": depth, "alpha": alpha,
                        "new_users": 1 - table.mean(f"pap@{K}"), "training_users": found.risk,
                        "bound": found.bound,
                    }  # fmt: skip
