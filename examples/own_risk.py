"""Can I certify the minimiser of a risk of my own?

The solver asks an oracle for two things: the value of a convex risk at w and a subgradient. Any
object with `n_features` that is callable so will do. Here users count by how many items they looked
at, not equally, which the package's own risk does not offer.
"""

import cvxpy as cp
import numpy as np
from matplotlib import pyplot as plt

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import engagement_lists

# %%
# Scores, the surrogate's values for each user, its subgradient with respect to the scores, and
# back to features: `user_values` and `pullback` do the work.


class ActivityWeightedRisk:
    """``R(w) = sum_u n_u S(X_u w) / sum_u n_u`` for users with n_u items."""

    def __init__(self, surrogate, data):
        self.equal = EmpiricalRisk(surrogate, data)
        self.data = self.equal.data
        self.n_features = data.n_features
        self.share = self.data.sizes / self.data.sizes.sum()

    def __call__(self, w):
        """Value at w, and a subgradient."""
        values, coef = self.equal.user_values(self.equal.scores(w))
        weights = self.share[self.data.user_of_position]
        return self.share @ values, self.data.pullback(weights * coef)


lists = engagement_lists(n_users=150, n_features=12, noise=0.2, min_neg=5, seed=1)
data = RankingData.from_groups(lists.X, lists.y, lists.groups)
risk = ActivityWeightedRisk(make_surrogate("ts", 5), data)
alpha = 0.01
result = CuttingPlane(alpha=alpha, tol=1e-6).solve(risk)
print(f"objective {result.objective:.5f}, lower bound {result.lower_bound:.5f}, {result.status}")
print(f"{data.sizes.min()} to {data.sizes.max()} items a user")

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
print(f"bound computed again: {again:.5f}, not above the objective: {again <= result.objective}")

# %%
# A plain oracle gives one cut at a time, so this takes more passes, about 80, than the package's
# own risk, which gives a cut for each block of users. Give your oracle `with_blocks` and `cuts` to
# have the same; see the page on the design.

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
passes = result.curve("data_passes")
ax.step(passes, result.curve("objective"), where="post", label="best objective")
ax.step(passes, np.maximum(result.curve("lower_bound"), 0), where="post", label="certified bound")
ax.set(xlabel="passes over the data", ylabel="objective")
ax.legend(frameon=False)
figure.savefig("own_risk.png", dpi=120)
