"""Which alpha?

`GridSearchCV` of scikit-learn leaves out one fold of *lists* after the other, trains on the rest
and takes the alpha with the largest mean pAp@k on the lists that were left out. `alpha="auto"`, a
rule that needs no search, is the circle.
"""

import numpy as np
import sklearn
from matplotlib import pyplot as plt
from sklearn.model_selection import GridSearchCV, GroupKFold

from structsvm_papk import PAPKRanker
from structsvm_papk.datasets import digit_queries

sklearn.set_config(enable_metadata_routing=True)  # else groups reach the splitter only

X, y, users = digit_queries("train", n_queries=200)
X_new, y_new, users_new = digit_queries("test", n_queries=800)

alphas = np.logspace(1, -3, 9)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for shift, surrogate in ((0.96, "avg"), (1.04, "ts")):
    ranker = PAPKRanker(k=5, surrogate=surrogate, tol=1e-4, curves=None)
    search = GridSearchCV(ranker, {"alpha": alphas}, cv=GroupKFold(5))
    search.fit(X, y, groups=users)
    usual = ranker.fit(X, y, groups=users)

    mean, spread = (search.cv_results_[f"{name}_test_score"] for name in ("mean", "std"))
    for name, fitted in (("search", search), ("rule", usual)):
        alpha = search.best_params_["alpha"] if name == "search" else usual.alpha_
        gain = fitted.score(X_new, y_new, groups=users_new)
        print(f"{surrogate:<4} {name}: alpha = {alpha:.3g}, new lists {gain:.3f}")
    line = ax.errorbar(shift * alphas, mean, spread / 5**0.5, marker="o", ms=4, label=surrogate)
    at = np.interp(np.log(usual.alpha_), np.log(alphas[::-1]), mean[::-1])
    ax.plot(shift * usual.alpha_, at, "o", ms=11, mfc="none", color=line[0].get_color())

# %%
# The bars are standard errors over the folds: wider than the differences between alphas of the flat
# part. There any alpha will do, and the larger one is solved faster.

ax.set(xscale="log", xlabel="alpha", ylabel="mean pAp@5 of held-out lists")
figure.legend(title="circle: the rule", frameon=False, loc="outside right upper")
figure.savefig("choose_alpha.png", dpi=120)
