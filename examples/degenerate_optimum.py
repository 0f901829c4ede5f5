"""What if the exact optimum ranks nothing?

Every surrogate is 1 at w = 0. Where no direction lets the selected positives beat the selected
negatives *on average* (for TS, users weigh n_pos/beta), no w does better, and the exact minimiser
is w = 0 for every alpha: all scores tie. This happens on real data. Here a row is the product of
two images, pixel by pixel, like the products of user and item features in the paper.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression

from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData, make_surrogate, metrics
from structsvm_papk.datasets import digit_queries
from structsvm_papk.diagnosis import diagnose
from structsvm_papk.errors import DegenerateOptimumWarning

X, y, users = digit_queries("train", n_queries=120, features="product")
X_new, y_new, users_new = digit_queries("test", n_queries=800, features="product")

# %%
# Ask before training. The answer has a proof: a subgradient of norm zero at 0, or a direction
# along which the surrogate falls. The bound says how much any w can gain.

data = RankingData.from_groups(X, y, users)
for name in ("avg", "ts", "max", "clipped_ramp"):
    diagnosis = diagnose(EmpiricalRisk(make_surrogate(name, 5), data))
    print(diagnosis)
    if name != "clipped_ramp":
        print(f"    min F >= {max(0, diagnosis.objective_bound(alpha=1e-3)):.4f} for alpha = 1e-3")

# %%
# Max ends at zero and says so. ClippedRamp is never above 1 and cannot be trapped like this: a
# pair that is hopeless costs 1, however wrong it is. The price is that it is not convex; CCCP goes
# from several starts to a critical point.

print()
gains = {}
for name in ("max", "avg", "ts", "clipped_ramp"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker = PAPKRanker(k=5, surrogate=name, depth=None, alpha=1e-3, curves=None, tol=1e-8)
        ranker.fit(X, y, groups=users)
    table = metrics.evaluate("pap@5", ranker.predict(X_new), y_new, users_new)
    gains[name] = metrics.interval(table, "pap@5")
    digits = 4 if ranker.result_.lower_bound > 0 else 2  # where CCCP ends depends on rounding
    print(
        f"{name:<12} {ranker.result_.status:<10} F = {ranker.result_.objective:.{digits}f}, "
        f"new users: {gains[name].value:.2f}"
    )
    for warning in caught:
        if issubclass(warning.category, DegenerateOptimumWarning):
            print(f"    warning: {warning.message}")

logistic = LogisticRegression(tol=1e-8, max_iter=5000).fit(X, y)
for name, values in (
    ("logistic", logistic.decision_function(X_new)),
    ("plain product", X_new.sum(axis=1)),
):
    gains[name] = metrics.interval(metrics.evaluate("pap@5", values, y_new, users_new), "pap@5")
    print(f"{name:<24} new users: {gains[name].value:.2f}")

# %%
# The convex surrogates that are not degenerate come close to it: their optimum lies within a few
# percent of F(0) = 1, and yet the directions rank. Look at the gain, not at the objective.

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
value, lower, upper = np.array([[g.value, g.lower, g.upper] for g in gains.values()]).T
ax.errorbar(value, range(len(gains)), xerr=(value - lower, upper - value), fmt="o", capsize=4)
ax.set_yticks(range(len(gains)), gains)
ax.invert_yaxis()
ax.set(xlabel="mean pAp@5 on new users, 95% intervals", xlim=(-0.02, 0.7))
ax.grid(axis="x", alpha=0.3)
figure.savefig("degenerate_optimum.png", dpi=120)
