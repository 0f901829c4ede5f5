"""What do AUPRC, partial AUC, precision and pAp@k tell of the same scores?

AUPRC depends on how rare relevant items are, AUROC does not. pAp@k is partial AUC for users with
few relevant items, and goes with precision@k for users with many.
"""

from itertools import pairwise

import numpy as np
from matplotlib import pyplot as plt
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

from structsvm_papk import metrics
from structsvm_papk.datasets import engagement_lists

# %%
# Scores of a model on new users, who have from one to a hundred relevant items.

train = engagement_lists(n_users=200, noise=1.5, min_neg=10, seed=0)
new = engagement_lists(n_users=400, noise=1.5, min_neg=10, w_true=train.w_true, seed=1)
scores = LogisticRegression(max_iter=1000).fit(train.X, train.y).decision_function(new.X)
figure, (above, below) = plt.subplots(2, figsize=(6, 8), layout="constrained")

# %%
# Precision against recall, with each class weighed so that relevant items have another share.

for rate in (0.5, 0.1, 0.01, 0.001):
    weights = np.where(new.y == 1, rate / new.y.mean(), (1 - rate) / (1 - new.y.mean()))
    precision, recall, _ = sk.precision_recall_curve(new.y, scores, sample_weight=weights)
    auprc = sk.average_precision_score(new.y, scores, sample_weight=weights)
    line = above.plot(recall, precision, label=f"{rate:.1%} relevant: AUPRC {auprc:.3f}")[0]
    above.axhline(rate, color=line.get_color(), lw=0.8, ls=":")
auroc = sk.roc_auc_score(new.y, scores)
print(f"AUROC is {auroc:.2f} at every share")
above.set(xlabel="recall", ylabel="precision", yscale="log", ylim=(3e-5, 1.5))
above.set_title(f"the same scores, AUROC {auroc:.2f} each (dotted: random)", fontsize="medium")
above.legend(loc="lower left")

# %%
# The mean of each metric over users with about as many relevant items.

names = ["pap@10", "pauc@10", "precision@10"]
table = metrics.evaluate(names, scores, new.y, new.groups)
edges = np.array([1, 2, 3, 4, 6, 8, 11, 15, 20, 30, 101])
groups = [(table.n_pos >= few) & (table.n_pos < many) for few, many in pairwise(edges)]
places = [table.n_pos[some].mean() for some in groups]
for name, style in zip(names, ("o-", "s--", "^:"), strict=True):
    below.plot(places, [table[name][some].mean() for some in groups], style, label=name)
below.axvline(10, color="0.6", lw=0.8)
below.set(xscale="log", xlabel="relevant items of a user (line: k = 10)", ylabel="mean over users")
below.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"], minor=False)
below.minorticks_off()
below.legend()
figure.savefig("what_metrics_tell.png", dpi=120)
