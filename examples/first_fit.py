"""How do I train a ranker, and how good is it?

A user holds up an image of a handwritten digit and is shown 60 others; the ranker is to put those
of the same digit on top. It learns one weight for each of the 64 pixels: how much a difference
there matters. The data come with scikit-learn.
"""

from matplotlib import pyplot as plt

from structsvm_papk import PAPKRanker
from structsvm_papk.datasets import digit_queries
from structsvm_papk.plots import PAPDisplay

# %%
# Rows of 200 users, and of 800 other users who look at other images. `fit` takes rows in any
# order; `groups` says whose they are.

X, y, users = digit_queries("train", n_queries=200)
X_new, y_new, users_new = digit_queries("test", n_queries=800)

ranker = PAPKRanker(k=5, surrogate="ts", depth=None, alpha=0.1, curves=None, tol=1e-8)
ranker.fit(X, y, groups=users)

# %%
# The certificate: no weights at all have an objective below `lower_bound`. The score is the mean
# pAp@5 over users: how many of the pairs of a best relevant and a best other item are in order.

result = ranker.result_
print(f"objective    {result.objective:.6f}")
print(f"lower bound  {result.lower_bound:.6f}, relative gap below 1e-8: {result.gap < 1e-8}")
print(f"{result.message}")
print(f"mean pAp@5   {ranker.score(X, y, groups=users):.3f} on the users of the training")
print(f"             {ranker.score(X_new, y_new, groups=users_new):.3f} on new users and images")
print(f"             {ranker.score(X_new * 0, y_new, groups=users_new):.3f} if all scores tie")

# %%
# Left: the weights, where a difference counts (red) and where it does not. Right: pAp@k of new
# users for k = 1, 2, .., with a band of 95%.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(1, 2))
largest = abs(ranker.coef_).max()
image = left.imshow(ranker.coef_.reshape(8, 8), cmap="coolwarm", vmin=-largest, vmax=largest)
figure.colorbar(image, ax=left, label="weight of the pixel")
left.set_axis_off()
PAPDisplay.from_predictions(y_true=y_new, y_score=ranker.predict(X_new), groups=users_new, ax=right)
figure.tight_layout()
figure.savefig("first_fit.png", dpi=120)
