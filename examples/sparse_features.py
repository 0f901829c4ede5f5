"""How do I train on sparse features?

Hand over a CSR matrix; nothing is made dense. Here each item carries about eight of 200 tags and
each user belongs to one of five groups; a row has one column for each tag of the item and one for
each pair of the user's group and a tag: 1,200 columns, sixteen or so of them set.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse

from structsvm_papk import PAPKRanker

N_TAGS, N_GROUPS = 200, 5
rng = np.random.default_rng(0)
taste = rng.normal(size=N_TAGS)  # of everybody
own_taste = rng.normal(size=(N_GROUPS, N_TAGS))  # of a group, on top


def lists(n_users, n_items=40):
    """Rows of the users' items, labels (the best fifth of each list), users."""
    users = np.repeat(np.arange(n_users), n_items)
    group = rng.integers(N_GROUPS, size=n_users)[users]
    tags = sparse.random_array((users.size, N_TAGS), density=0.04, rng=rng, format="csr")
    tags.data[:] = 1.0
    in_group = sparse.csr_array(np.eye(N_GROUPS)[group])
    crossed = sparse.hstack([tags.multiply(in_group[:, [g]]) for g in range(N_GROUPS)])
    score = tags @ taste + (tags * own_taste[group]).sum(axis=1) + rng.normal(size=users.size)
    best = np.sort(score.reshape(n_users, n_items), axis=1)[:, -(n_items // 5)]
    return sparse.hstack([tags, crossed], format="csr"), score >= best[users], users


X, y, users = lists(600)
X_new, y_new, users_new = lists(300)
megabytes = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
print(f"{X.shape[0]:,} rows x {X.shape[1]:,} columns, {X.nnz:,} values:")
print(f"{megabytes:.0f} MB as CSR, {8e-6 * np.prod(X.shape):,.0f} MB dense\n")

# %%
# Solver, certificate, scores and model files are those of dense data.

for name, columns in (("tags", N_TAGS), ("tags and group x tag", X.shape[1])):
    for alpha in (300, 30):
        ranker = PAPKRanker(k=5, surrogate="ts", depth=None, alpha=alpha, tol=1e-6)
        ranker.fit(X[:, :columns], y, groups=users)
        print(
            f"{name:<21} alpha = {alpha:<3} gap below 1e-6: {ranker.result_.gap <= 1e-6}, pAp@5 "
            f"{ranker.score(X[:, :columns], y, groups=users):.3f}, new users "
            f"{ranker.score(X_new[:, :columns], y_new, groups=users_new):.3f}"
        )

# %%
# The weights that the last fit gave the tags, beside the taste behind the data:

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.plot(taste, ranker.coef_[:N_TAGS], ".", ms=4)
ax.set(xlabel="taste behind the data", ylabel="weight of the tag", title="200 tags")
figure.savefig("sparse_features.png", dpi=120)
