"""Is one ranker better than another, or lucky?

Three ways to rank images by likeness to a query: Euclidean distance, logistic regression on the
rows, and a ranker trained for pAp@5. All are compared on the *same* new users, each of whom is one
observation.
"""

from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression

from structsvm_papk import PAPKRanker, metrics
from structsvm_papk.datasets import digit_queries
from structsvm_papk.plots import PAPDisplay

X, y, users = digit_queries("train", n_queries=200)
X_new, y_new, users_new = digit_queries("test", n_queries=800)

scores = {
    "Euclidean": X_new.sum(axis=1),
    "logistic": LogisticRegression(tol=1e-8, max_iter=5000).fit(X, y).decision_function(X_new),
    "trained (ts)": PAPKRanker(k=5, surrogate="ts", depth=None, alpha=0.1, curves=None, tol=1e-8)
    .fit(X, y, groups=users)
    .predict(X_new),
}

# %%
# One table per scorer: every metric of every user. `interval` resamples users; with
# `method="kl"` the interval is guaranteed for any number of users, and wider.

names = ["pap@5", "ndcg@5", "auc"]
tables = {
    name: metrics.evaluate(names, values, y_new, users_new) for name, values in scores.items()
}
for name, table in tables.items():
    for method in ("bootstrap", "kl"):
        mean = metrics.interval(table, "pap@5", method=method)
        print(f"{name:<13} {mean.value:.3f} [{mean.lower:.3f}, {mean.upper:.3f}] {method}")

# %%
# The intervals overlap, and still one ranker is better: what counts is the difference *within*
# users. `compare` gives its interval and the p-value of a permutation test, corrected for the
# number of metrics.

for baseline in ("Euclidean", "logistic"):
    print(f"\ntrained less {baseline}")
    for pair in metrics.compare(tables["trained (ts)"], tables[baseline]):
        print(
            f"  {pair.metric:<7} {pair.difference:+.3f} [{pair.lower:+.3f}, {pair.upper:+.3f}]"
            f"  p = {pair.p_adjusted:.1g}"
        )

# %%
# The same over all k: the metric of the paper for every number of items shown.

ax = plt.subplots(figsize=(7, 4), layout="constrained")[1]
for name, values in scores.items():
    PAPDisplay.from_predictions(y_true=y_new, y_score=values, groups=users_new, name=name, ax=ax)
ax.figure.savefig("compare_rankers.png", dpi=120)
