"""Which alpha?

`PAPKRankerCV` leaves out one fold of *users* after the other, solves a whole path of alphas on the
rest and takes the alpha with the largest mean pAp@k on held-out users. Cuts do not depend on
alpha, so each solve starts with those of the one before.
"""

import numpy as np
from matplotlib import pyplot as plt

from structsvm_papk import PAPKRankerCV
from structsvm_papk.datasets import digit_queries

X, y, users = digit_queries("train", n_queries=200)
X_new, y_new, users_new = digit_queries("test", n_queries=800)

alphas = np.logspace(0, -4, 9)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for shift, surrogate in ((0.93, "avg"), (1.0, "ts"), (1.07, "max")):
    ranker = PAPKRankerCV(
        k=5, surrogates=(surrogate,), depths=(None,), user_weights=("equal",), alphas=alphas,
        user_scaling=[None], selection="best", cv_tol=1e-8, tol=1e-8,
    )  # fmt: skip
    ranker.fit(X, y, groups=users)

    mean, error = (ranker.cv_results_[f"{name}_test_score"] for name in ("mean", "se"))
    alpha = ranker.best_params_["alpha"]
    at = int(np.flatnonzero(alphas == alpha)[0])
    print(
        f"{surrogate:<4} alpha = {alpha:.3g}: left-out users {mean[at]:.3f} "
        f"+- {error[at]:.3f}, new users {ranker.score(X_new, y_new, groups=users_new):.3f}"
    )
    line = ax.errorbar(shift * alphas, mean, error, marker="o", ms=4, capsize=2, label=surrogate)
    ax.plot(shift * alpha, mean[at], "o", ms=11, mfc="none", color=line[0].get_color())

# %%
# The bars are standard errors over the users: far wider than the differences between alphas. Where
# that is so, any alpha of the flat part will do, and the larger one is solved faster.

ax.set(xscale="log", xlabel="alpha", ylabel="mean pAp@5 of held-out users")
figure.legend(title="circle: chosen", frameon=False, loc="outside right upper")
figure.savefig("choose_alpha.png", dpi=120)
