"""Speed of the evaluation beside other libraries, in one run on one machine.

    python benchmarks/evaluation.py [--users 100000] [--threads 1] [--json out.json]

Everyone's data are prepared outside the clock, everyone is warmed up, and rounds are interleaved so
that a slow phase of the machine meets all. Libraries that are not installed are left out: ranx,
torchmetrics and rectools with pandas. The best of the rounds counts.
"""

import argparse
import json
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np

METRICS = ("auc", "pauc@10", "pap@10", "precision@10", "ap", "ndcg@10")
LIBRARIES = ("structsvm-papk", "numpy", "numba", "scikit-learn", "ranx", "torchmetrics", "torch",
             "rectools", "pandas")  # fmt: skip


def main():
    options = parsed()
    results = {"versions": versions(), "users": options.users, "threads": options.threads}
    for name, group in (("lists", lists), ("long frame", long_frame), ("recommendations", recos)):
        if options.only and name not in options.only:
            continue
        seconds = race(group(options), options.rounds)
        results[name] = seconds
        show(name, seconds)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    print(" ".join(f"{k} {v}" for k, v in results["versions"].items()))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=1, help="threads of this package")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="lists, long frame, recommendations")
    parser.add_argument("--without", nargs="*", default=[], help="libraries to leave out")
    parser.add_argument("--json")
    return parser.parse_args()


def versions():
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def race(contenders, rounds):
    """Best seconds of each contender, rounds interleaved; slow ones run once after the warm-up."""
    best = {}
    for round_ in range(rounds + 1):
        for name, run in contenders.items():
            if best.get(name, 0) > 5 and round_ > 1:
                continue
            start = time.perf_counter()
            run()
            seconds = time.perf_counter() - start
            if round_ > 0:
                best[name] = min(best.get(name, np.inf), seconds)
    return best


def show(title, seconds):
    ours = next(iter(seconds.values()))
    print(f"\n{title}")
    for name, value in seconds.items():
        print(f"  {name:58s} {value:9.3f} s {value / ours:9.1f} x")


def has(library, options):
    return find_spec(library) is not None and library not in options.without


def data(users, items=100, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((users, items))
    return scores, (rng.random((users, items)) < share).astype(np.int64)


def lists(options):
    """All metrics on users x 100 items, against one or some metrics of the others."""
    from sklearn.metrics import ndcg_score

    from structsvm_papk import metrics

    scores, labels = data(options.users)
    flat, relevant = scores.ravel(), labels.ravel()
    bounds = np.arange(0, flat.size + 1, 100)
    contenders = {
        f"structsvm_papk: {', '.join(METRICS)}": lambda: metrics.evaluate(
            METRICS, flat, relevant, indptr=bounds, n_threads=options.threads
        ),
        "scikit-learn: ndcg_score": lambda: ndcg_score(labels, scores, k=10),
        "scikit-learn: ndcg_score, ignore_ties": lambda: ndcg_score(
            labels, scores, k=10, ignore_ties=True
        ),
    }
    if has("ranx", options):
        contenders |= ranx_contender(scores, labels)
    if has("torchmetrics", options):
        contenders |= torchmetrics_contenders(flat, relevant, options.users)
    return contenders


def ranx_contender(scores, labels):
    import ranx

    items = np.array([f"i{i:03d}" for i in range(labels.shape[1])])
    names = [f"u{u:06d}" for u in range(labels.shape[0])]
    qrels = {u: dict.fromkeys(items[y > 0].tolist(), 1) for u, y in zip(names, labels, strict=True)}
    qrels = {u: found for u, found in qrels.items() if found}
    kept = [u for u in names if u in qrels]
    rows = dict(zip(names, scores, strict=True))
    prepared = (
        ranx.Qrels(qrels),
        ranx.Run({u: dict(zip(items.tolist(), rows[u].tolist(), strict=True)) for u in kept}),
    )
    wanted = ["precision@10", "map", "ndcg@10"]
    return {f"ranx: {', '.join(wanted)}": lambda: ranx.evaluate(*prepared, wanted)}


def torchmetrics_contenders(flat, relevant, users):
    import torch
    from torchmetrics import retrieval

    indexes = torch.arange(users).repeat_interleave(flat.size // users)
    preds, target = torch.from_numpy(flat), torch.from_numpy(relevant).bool()

    def run(metric):
        metric.update(preds, target, indexes=indexes)
        return metric.compute()

    return {
        "torchmetrics: RetrievalNormalizedDCG": lambda: run(
            retrieval.RetrievalNormalizedDCG(top_k=10)
        ),
        "torchmetrics: RetrievalMAP": lambda: run(retrieval.RetrievalMAP()),
    }


def long_frame(options):
    """The same rows in random order in a frame, sorting included, against sorted arrays."""
    import pandas as pd

    from structsvm_papk import metrics
    from structsvm_papk.metrics import evaluate_frame

    scores, labels = data(options.users)
    users = np.repeat(np.arange(options.users), 100)
    order = np.random.default_rng(1).permutation(users.size)
    frame = pd.DataFrame({
        "user_id": users[order], "score": scores.ravel()[order], "label": labels.ravel()[order]
    })  # fmt: skip
    bounds = np.arange(0, users.size + 1, 100)
    return {
        "kernel on sorted arrays": lambda: metrics.evaluate(
            METRICS, scores.ravel(), labels.ravel(), indptr=bounds, n_threads=options.threads
        ),
        "unsorted pandas frame": lambda: evaluate_frame(frame, METRICS, n_threads=options.threads),
    }


def recos(options):
    """pAp@10 of 50 recommendations a user against RecTools, from frames."""
    import pandas as pd

    from structsvm_papk.metrics import evaluate_recommendations

    rng = np.random.default_rng(2)
    users, catalogue = options.users, 2000
    shown = rng.integers(0, catalogue, users)[:, None] + rng.permutation(400)[:50] * 5
    liked = rng.integers(0, catalogue, users)[:, None] + rng.permutation(2000)[:10]
    reco = pd.DataFrame({
        "user_id": np.repeat(np.arange(users), 50), "item_id": shown.ravel() % catalogue,
        "rank": np.tile(np.arange(1, 51), users),
    })  # fmt: skip
    interactions = pd.DataFrame({
        "user_id": np.repeat(np.arange(users), 10), "item_id": liked.ravel() % catalogue
    })  # fmt: skip
    contenders = {
        "structsvm_papk: evaluate_recommendations pap@10": lambda: evaluate_recommendations(
            reco, interactions, "pap@10", n_threads=options.threads
        )
    }
    if has("rectools", options):
        from rectools.metrics import PAP

        ours = evaluate_recommendations(reco, interactions, "pap@10").mean("pap@10")
        theirs = PAP(k=10).calc(reco, interactions)
        assert abs(ours - theirs) < 1e-12, (ours, theirs)
        contenders["rectools: PAP(k=10)"] = lambda: PAP(k=10).calc(reco, interactions)
    return contenders


if __name__ == "__main__":
    main()
