"""Can I certify the minimiser of a risk of my own?

The solver asks an oracle for two things: the value of a convex risk at w and a subgradient. Any
object with `n_features` that is callable so will do. Here it is the users who are served worst that
count: the mean over the fifth of the users whose lists are ranked worst, instead of over all.
"""

import cvxpy as cp
import numpy as np
from matplotlib import pyplot as plt

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import engagement_lists

# %%
# Scores, the surrogate's values for each user, its subgradient with respect to the scores, and
# back to features: `user_values` and `rmatvec` do the work. The mean of the largest values is the
# largest mean of as many, a maximum of convex functions, and so convex itself.


class WorstUsersRisk:
    """``R(w)``: mean of the m largest ``S(X_u w)`` over users u, with m = share of the users."""

    def __init__(self, surrogate, data, share):
        self.equal = EmpiricalRisk(surrogate, data)
        self.data = self.equal.data
        self.n_features = data.n_features
        self.m = int(np.ceil(share * self.data.n_users))

    def __call__(self, w):
        """Value at w, and a subgradient."""
        values, coef = self.equal.user_values(self.equal.scores(w))
        weights = np.zeros(self.data.n_users)
        weights[np.argsort(-values)[: self.m]] = 1 / self.m
        return weights @ values, self.data.rmatvec(weights[self.data.user_of_position] * coef)


lists = engagement_lists(n_users=150, n_features=12, noise=0.2, min_neg=5, seed=1)
data = RankingData.from_groups(lists.X, lists.y, lists.groups)
surrogate, alpha = make_surrogate("ts", 5), 0.01
risk = WorstUsersRisk(surrogate, data, share=0.2)
result = CuttingPlane(alpha=alpha).solve(risk)
print(f"objective {result.objective:.4f}, lower bound {result.lower_bound:.4f}, {result.status}")

usual = CuttingPlane(alpha=alpha).solve(EmpiricalRisk(surrogate, data))
for name, w in (("worst users", result.w), ("all users", usual.w)):
    everybody = EmpiricalRisk(surrogate, data)(w)[0]
    print(f"trained for {name:<11} TS of the worst fifth {risk(w)[0]:.3f}, of all {everybody:.3f}")

# %%
# Need you trust the solver? The certificate can be checked from what it hands back. First, its cuts
# lie below the risk wherever one looks. Then, any weights theta >= 0 that add up to 1 turn cuts
# into a bound, b.theta - |A' theta|^2 / (2 alpha); here another program finds them.

A, b, _ = result.cuts
rng = np.random.default_rng(0)
points = result.w + rng.normal(size=(500, 12)) * np.geomspace(1e-3, 10, 500)[:, None]
slack = [risk(w)[0] - (A @ w + b).max() for w in points]
print(f"the risk is above the highest cut at 500 points: {min(slack) > -1e-9}")

theta = cp.Variable(b.size, nonneg=True)
bound = b @ theta - cp.sum_squares(A.T @ theta) / (2 * alpha)
cp.Problem(cp.Maximize(bound), [cp.sum(theta) == 1]).solve(solver=cp.CLARABEL)
theta = np.maximum(theta.value, 0) / np.maximum(theta.value, 0).sum()
again = b @ theta - np.sum((A.T @ theta) ** 2) / (2 * alpha)
print(f"bound computed again: {again:.4f}, not above the objective: {again <= result.objective}")

# %%
# A plain oracle gives one cut at a time, so this takes more passes than the package's own risk,
# which gives a cut for each block of users. Derive your oracle from `BlockOracle` of
# `structsvm_papk.solvers` and write `blocks` to have the same; see the page on the design.

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
passes = result.curve("data_passes")
ax.step(passes, result.curve("objective"), where="post", label="best objective")
ax.step(passes, np.maximum(result.curve("lower_bound"), 0), where="post", label="certified bound")
ax.set(xlabel="passes over the data", ylabel="objective")
ax.legend(frameon=False)
figure.savefig("own_risk.png", dpi=120)
