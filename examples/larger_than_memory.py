"""How do I train on files that do not fit into memory?

Give the risk a memory budget. The features stay in their file and are read in pieces, in every
pass; solver and certificate do not notice. Here the file is small, 80 MB, and the budget smaller.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.files import open_source
from structsvm_papk.oracles import StreamedRisk

N_USERS, N_ITEMS, N_FEATURES = 2000, 100, 50
rng = np.random.default_rng(0)
taste = rng.normal(size=N_FEATURES)
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)

# %%
# Three `.npy` files, written in pieces too: features, labels, users. A user's rows stand together.

shape = (N_USERS * N_ITEMS, N_FEATURES)
X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float64, shape=shape)
y = np.empty(shape[0], dtype=bool)
for first in range(0, shape[0], 20 * N_ITEMS):
    rows = slice(first, first + 20 * N_ITEMS)
    X[rows] = rng.normal(size=(20 * N_ITEMS, N_FEATURES))
    scores = (X[rows] @ taste + 2 * rng.normal(size=20 * N_ITEMS)).reshape(-1, N_ITEMS)
    y[rows] = (scores >= np.sort(scores)[:, [-15]]).ravel()  # each user's best 15
X.flush()
np.save(folder / "y.npy", y)
np.save(folder / "groups.npy", np.repeat(np.arange(N_USERS), N_ITEMS))

# %%
# The same solver on the file and on the array.

source = open_source(folder)
surrogate = make_surrogate("ts", 10)
streamed = StreamedRisk(surrogate, source, memory_budget=40_000_000)
in_memory = EmpiricalRisk(
    surrogate, RankingData.from_groups(np.array(X), y, np.load(folder / "groups.npy"))
)
solver = CuttingPlane(alpha=1e-3)
results = {"file": solver.solve(streamed), "memory": solver.solve(in_memory)}
for name, result in results.items():
    print(f"{name:<7} objective {result.objective:.5f}, bound {result.lower_bound:.5f}")

# %%
# Reading again in every pass is the price, and there are forty to fifty of them. The better the
# solver uses a pass, the less it is:

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for (name, result), style in zip(results.items(), ("-", "--"), strict=True):
    gap = np.maximum(result.curve("gap"), 1e-9)
    ax.step(result.curve("data_passes"), gap, style, where="post", label=name)
ax.set(xlabel="passes over the data", ylabel="certified relative gap", yscale="log")
ax.legend(frameon=False)
figure.savefig("larger_than_memory.png", dpi=120)
scratch.cleanup()
