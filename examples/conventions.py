"""Why do two libraries print different numbers for the same ranking?

Textbook formulas leave choices open: what a tie is worth, what to do with users who have fewer than
k other items or no relevant one, how users are averaged. Here one ranking is scored under many
rules.
"""

from matplotlib import pyplot as plt

from structsvm_papk import metrics
from structsvm_papk.datasets import engagement_lists

# %%
# Users of very different activity, scores rounded so that many tie.

lists = engagement_lists(n_users=200, mean_items=20, relevant_share=0.25, noise=1.0, seed=2)
scores = (lists.X @ lists.w_true / 4.5).round()
rules = {
    "ties are errors (the paper)": {"preset": "icml2020"},
    "ties count half": {"ties": "half"},
    "ties are successes": {"ties": "win"},
    "few negatives: existing pairs": {"few_negatives": "normalise"},
    "few negatives: missing ones lose": {"few_negatives": "as_wins"},
    "users weighed by relevant items": {"mean": "positives"},
    "all rows as one list": {"mean": "pooled"},
    "as RecTools": {"preset": "rectools"},
    "as scikit-learn": {"preset": "sklearn"},
}

# %%
# A summary says how many users each rule met: print it beside the number.

names = ["pap@5", "auc"]
tables = {
    rule: metrics.evaluate(names, scores, lists.y, lists.groups, **choices)
    for rule, choices in rules.items()
}
for rule, table in tables.items():
    summary = table.summary("pap@5")
    met = ", ".join(f"{n} {choice}" for choice, n in summary.by_rule.items() if n)
    print(f"{rule:<33} {summary.value:.3f} over {summary.n_used} users; {met}")

# %%
# The same ranking, and a range of pAp@5 wider than most differences between methods. Numbers of
# two papers, or of two libraries, can be compared only under the same rules.

figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
for metric, marker in (("pap@5", "o"), ("auc", "s")):
    ax.plot([table.mean(metric) for table in tables.values()], list(tables), marker, label=metric)
ax.invert_yaxis()
ax.set_xlabel("mean over users")
ax.grid(axis="x", alpha=0.3)
ax.legend(frameon=False)
figure.savefig("conventions.png", dpi=120)
