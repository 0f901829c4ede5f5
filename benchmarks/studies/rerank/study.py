"""From interactions to a better top of the list: re-rankers over the scores of recommenders.

First-stage recommenders are fitted on a part of the training interactions; of the rest, the labels,
re-rankers learn to weigh their scores. Then the recommenders are fitted on all training
interactions, and every method orders the items that a user does not know; the test interactions
say how well.
"""

import time
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.cells import write
from benchmarks.studies.rerank import first_stage, methods
from benchmarks.studies.rerank.data import inner_split, read
from benchmarks.studies.rerank.lists import Lists, build
from benchmarks.studies.rerank.methods import OURS
from structsvm_papk.errors import InputError


@dataclass(frozen=True)
class Plan:
    """What a run computes: re-rankers see `candidates` items of a user, who is shown k of them.

    They are trained on `train_users` random users (recommenders on all), measured on `test_users`
    or all.
    """

    k: int = 20
    candidates: int = 200
    train_users: int = 5000
    test_users: int | None = None
    first_stage: str = "auto"
    seed: int = 0

    def __post_init__(self):
        for name in ("k", "candidates", "train_users"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.test_users is not None and self.test_users < 1:
            raise InputError(f"test_users must be at least 1, got {self.test_users}")
        object.__setattr__(self, "first_stage", first_stage.resolve(self.first_stage))


def run(source, plan, names=(), cells=None, callback=None):
    """The whole table: our re-rankers and those in `names`, by default all that can run here."""
    unknown = [name for name in names if name not in methods.METHODS]
    if unknown:
        raise InputError(f"unknown method {unknown[0]!r}; choose from {', '.join(methods.METHODS)}")
    say = callback or (lambda text: None)
    say("reading")
    data = read(source)
    if data.n_items <= plan.k:
        raise InputError(f"{source} has {data.n_items} items; k={plan.k} has to be smaller")
    stage = _Stages(data, plan, cells, say)
    found = {}
    for name in dict.fromkeys((*(names or methods.available()), OURS)):
        say(name)
        found[name] = cells.get(
            stage.key(name),
            lambda name=name: methods.outcome(name, stage.train(), stage.test(), plan.k, plan.seed),
        )
    return _answer(data, plan, stage, found)


class _Stages:
    """The lists of a run: computed once, kept in the folder, and read when they are needed."""

    def __init__(self, data, plan, cells, say):
        self.data, self.plan, self.cells, self.say = data, plan, cells, say
        self._lists = {}

    def key(self, part):
        """Key of a part of the run in its folder."""
        return [self.data.digest, asdict(self.plan), part]

    def train(self):
        """Lists of the inner split."""
        return self._get("inner")[0]

    def test(self):
        """Lists of the test split."""
        return self._get("test")[0]

    def recommenders(self):
        """Values of each recommender on the test split, and counts and seconds of both stages."""
        return self._get("inner")[1], self._get("test")[1]

    def _get(self, part):
        if part not in self._lists:
            key = self.key(part)
            known = self.cells.load(key)
            if known is None:
                lists, known = self._compute(part)
                if self.cells.folder is not None:
                    write(self._file(key), lists.packed())
                self.cells.save(key, known)
            else:
                lists = Lists.unpacked(self._file(key))
            self._lists[part] = lists, known
        return self._lists[part]

    def _file(self, key):
        return self.cells.path(key).with_suffix(".npz")

    def _compute(self, part):
        plan, train = self.plan, self.data.train
        if part == "inner":
            history, relevant = inner_split(train, seed=plan.seed)
            wanted = plan.train_users
        else:
            history, relevant, wanted = train, self.data.test, plan.test_users
        able = np.flatnonzero(np.diff(relevant.indptr))
        if not able.size:
            raise InputError("no user has two training interactions: there is nothing to learn")
        users = np.sort(np.random.default_rng(plan.seed).permutation(able)[:wanted])
        began = time.process_time()
        seconds = {}

        def fitted(name):
            seconds[name] = time.process_time() - began - sum(seconds.values())
            self.say(f"{part} split: {name} fitted")

        models = first_stage.fit_all(history, plan.first_stage, fitted)
        done = 0

        def scored(n):
            nonlocal done
            done += n
            self.say(f"{part} split: candidates of {done} of {users.size} users")

        lists, values = build(models, history, relevant, users, plan.candidates, plan.k, scored)
        relevant_candidates = int(lists.labels.sum())
        return lists, {
            "values": values,
            "seconds": seconds,
            "candidate_seconds": time.process_time() - began - sum(seconds.values()),
            "n_users": users.size,
            "n_rows": lists.labels.size,
            "candidate_recall": relevant_candidates / int(lists.n_relevant.sum()),
        }


def _answer(data, plan, stage, found):
    """The table and what it was made from, of what JSON can say."""
    inner, test = stage.recommenders()
    ours = found[OURS]["values"]
    rows = [
        {
            **_row(name, "recommender", values, ours, plan),
            "seconds": inner["seconds"][name] + test["seconds"][name],
        }
        for name, values in test["values"].items()
    ]
    rows += [
        {
            **_row(name, "re-ranker", part["values"], ours, plan),
            "seconds": part["fit_seconds"],
            "score_seconds": part["score_seconds"],
            "setting": part["setting"],
            "certificate": part["certificate"],
        }
        for name, part in found.items()
    ]
    name, source, published = data.published
    return {
        "dataset": name,
        "n_users": data.n_users,
        "n_items": data.n_items,
        "n_train": int(data.train.nnz),
        "n_test": int(data.test.nnz),
        "remarks": data.remarks,
        **asdict(plan),
        "n_train_users": inner["n_users"],
        "n_test_users": test["n_users"],
        "candidate_recall": test["candidate_recall"],
        "candidate_seconds": inner["candidate_seconds"] + test["candidate_seconds"],
        "rows": rows,
        "published": [
            {"name": label, "ndcg": ndcg, "recall": recall, "source": source}
            for label, (ndcg, recall) in (published.items() if plan.k == 20 else ())
        ],
    }


def _row(name, kind, values, ours, plan):
    """Means of one method, and by how much ours is ahead in NDCG, with a paired interval."""
    ndcg, recall, pap = (np.array(values[f"{m}@{plan.k}"]) for m in ("ndcg", "recall", "pap"))
    ahead = np.array(ours[f"ndcg@{plan.k}"]) - ndcg
    lower = upper = None
    if name != OURS and ahead.size > 1:
        half = 1.96 * ahead.std(ddof=1) / np.sqrt(ahead.size)
        lower, upper = float(ahead.mean() - half), float(ahead.mean() + half)
    means = {"ndcg": ndcg.mean(), "recall": recall.mean(), "pap": pap.mean()}
    return {
        "name": name,
        "kind": kind,
        **{label: float(mean) for label, mean in means.items()},
        "ours_ahead": float(ahead.mean()),
        "lower": lower,
        "upper": upper,
    }


def figure(answer):
    """NDCG@k of every method, best last; bars: paired intervals against ours; lines: published."""
    from matplotlib.figure import Figure

    rows = sorted(answer["rows"], key=lambda row: row["ndcg"])
    ours = next(row["ndcg"] for row in rows if row["name"] == OURS)
    drawn = Figure(figsize=(7.2, 0.32 * len(rows) + 1.6), layout="constrained")
    axes = drawn.subplots()
    for place, row in enumerate(rows):
        style = "#8a8a8a" if row["kind"] == "recommender" else "#dd6b1f"
        if row["name"] == OURS:
            style = "#1b5e9b"
        if row["lower"] is not None:
            axes.plot([ours - row["upper"], ours - row["lower"]], [place] * 2, color=style)
        axes.plot(row["ndcg"], place, "o", color=style)
    for line in answer["published"]:
        axes.axvline(line["ndcg"], color="0.6", linewidth=0.8, linestyle=":")
    if answer["published"]:
        best = max(answer["published"], key=lambda line: line["ndcg"])
        label = f"published: {best['name']} "
        axes.text(best["ndcg"], -0.4, label, fontsize=8, color="0.4", ha="right")
    axes.axvline(ours, color="#1b5e9b", linewidth=0.8, alpha=0.5)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set_xlabel(f"NDCG@{answer['k']} over all items that the user does not know")
    axes.grid(alpha=0.25, axis="x")
    return drawn
