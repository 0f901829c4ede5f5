"""Whatever is given for an argument of a supported name ends well, or in a sentence of ours."""

import functools
import inspect
import json
import sys
import traceback
from dataclasses import is_dataclass

import numpy as np
import pytest

import structsvm_papk as sp
from helpers.marks import slow
from helpers.policy import listed, supported
from helpers.sources import npy_source
from structsvm_papk import (
    bounds,
    datasets,
    diagnosis,
    files,
    fusion,
    integrations,
    margins,
    metrics,
    oracles,
    plots,
    propositions,
    rankers,
    surrogates,
)
from structsvm_papk.errors import InputError
from structsvm_papk.files.trec import RUN, read_lines
from structsvm_papk.fusion.requests import EngineWeights

RNG = np.random.default_rng(0)
USERS = np.repeat(np.arange(4), 6)
X, Y = RNG.normal(size=(24, 2)), np.tile([1, 0, 0, 1, 0, 0], 4)
SCORES = RNG.permutation(24).astype(float)
LISTS = sp.RankingData.from_groups(X, Y, USERS)
TS = sp.make_surrogate("ts", 2)
RISK = sp.EmpiricalRisk(TS, LISTS)
RAMP = sp.EmpiricalRisk(sp.make_surrogate("ramp", 2), LISTS)
AVG = sp.EmpiricalRisk(sp.make_surrogate("avg", 2), LISTS)
FRAME = {"user_id": USERS, "item_id": np.tile(np.arange(6), 4), "score": SCORES, "label": Y}
FRAME |= {"rank": np.tile(np.arange(1, 7), 4)}
ROWS = {"scores": SCORES, "labels": Y, "groups": USERS}
RUNS = {
    "a": {"q": {"x": 2.0, "y": 1.0}, "r": {"x": 2.0, "z": 1.0}},
    "b": {"q": {"y": 3.0}, "r": {"z": 2.0}},
}
JUDGED = {"q": {"x": 1}, "r": {"z": 1}}
WEIGHTS = EngineWeights("qdrant", {"a": 1.0, "b": 2.0}, window=3)

PREDICTED = {"y_true": Y, "y_score": SCORES, "groups": USERS}
# not for users; of matplotlib; switches, which take what is true
UNTRIED = {"setting", "ax", "title", "standardize"}
UNTRIED |= {"largest_margin"}


class Odd:
    """Nothing that an argument could be."""


WRONG = {
    "None": None, "an object": Odd(), "text": "text", "-1": -1, "NaN": float("nan"), "1.5": 1.5,
    "complex": 1j, "an empty list": [], "a ragged list": [[1, 2], [3]], "objects": [Odd(), Odd()],
    "a dict": {"a": 1}, "bytes": b"x", "a table": np.zeros((2, 2)), "True": True,
    "dates": np.array(["2020"], "M8[D]"), "10^400": 10**400,
}  # fmt: skip
SIZES = ("n_users", "n_items", "n_pos", "n_neg", "n_features", "min_neg")
LONG = {*((size, "10^400") for size in SIZES), ("ids", "None")}  # memory; all propositions


def made(kind, use):
    """What is done with an object of a class, as a function of the class's settings."""

    @functools.wraps(kind, updated=())
    def call(**settings):
        return use(kind(**settings))

    return call


def solved(solver, risk=RISK):
    return made(solver, lambda solver: solver.solve(risk))


def cases(folder):
    """Callables, and arguments that they take: those here, and the defaults of the others."""
    for call, given in calls(folder).items():
        parameters = inspect.signature(call).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        yield call, {name: v for name, v in defaults.items() if name not in UNTRIED} | given


def calls(folder):
    """Callables, and the arguments that they need or that make them quick."""
    source = npy_source(folder, X, Y.astype(float), USERS)
    (folder / "f.csv").write_text("user_id,label,x\n1,0,1\n1,1,2\n")
    fitted = sp.PAPKRanker(k=2).fit(X, Y, USERS)
    fitted.save(folder / "model")
    filled = sp.PAPKRanker(k=2, depth=0.9, missing="lowest").fit(X, Y, USERS)
    table = metrics.evaluate(["pap@2", "ap"], SCORES, Y, USERS)
    (folder / "a.run").write_text("q Q0 x 1 2.0 t\nq Q0 y 2 1.0 t\n")
    (folder / "a.qrels").write_text("q 0 x 1\n")
    weights = {"engine": "qdrant", "weights": {"a": 1.0, "b": 2.0}, "window": 3}
    (folder / "w.json").write_text(json.dumps(weights))
    runs = rankers.compare(LISTS, ["ts"], 2, 1.0, solvers=["cutting_plane"])
    limits = {"alpha": 1.0, "tol": 1e-2, "max_iter": 5}
    fit = {"k": 2, "relevance_threshold": None, "verbose": 0}
    fit |= dict.fromkeys(("callback", "checkpoint"))
    drawn, fitting = {"n_resamples": 20}, lambda ranker: ranker.fit(X, Y, USERS)
    return {
        sp.RankingData: {"X": X, "y": Y, "indptr": [0, 6, 12, 18, 24], "users": list("abcd"),
                         "user_weight": [1, 2, 3, 4.0], "feature_names": ["a", "b"]},
        LISTS.from_groups: {"X": X, "y": Y, "groups": USERS},
        LISTS.subset: {"keep": np.ones(4, bool)},
        LISTS.weighted: {"user_weight": "positives"},
        LISTS.usable: {"needed": 1, "policy": "raise"},
        LISTS.scores: {"w": [1.0, 2.0]},
        sp.EmpiricalRisk: {"surrogate": TS, "data": LISTS, "n_blocks": 2},
        RISK.__call__: {"w": np.zeros(2)},
        sp.make_surrogate: {"name": "avg", "k": 2, "depth": 3},
        surrogates.check_surrogate: {"surrogate": TS},
        solved(sp.CuttingPlane): limits | {"method": "bundle"},
        sp.CuttingPlane(1.0, 1e-3).solve: {"oracle": RISK},
        solved(sp.DualAscent, AVG): limits,
        solved(sp.SubgradientDescent): {"alpha": 1.0, "eta": 0.1, "max_iter": 9},
        solved(sp.CCCP, RAMP): limits | {"starts": ("zero",), "quasi_newton": 5},
        solved(sp.GlobalRamp, RAMP): {"alpha": 1.0, "tol": 0.5, "max_boxes": 10, "time_limit": 1.0},
        made(sp.PAPKRanker, fitting): fit | {
            "max_iter": 20, "n_threads": 1,
            "surrogate": "ts", "alpha": 0.1, "tol": 1e-2},
        sp.PAPKRanker(k=2).fit: {"X": X, "y": Y, "groups": USERS},
        fitted.predict: {"X": X},
        filled.predict: {"X": X, "groups": USERS},
        filled.to_model().predict: {"X": X, "groups": USERS},
        filled.to_model().top: {"X": X, "groups": USERS, "n": 3},
        fitted.score: {"X": X, "y": Y, "groups": USERS},
        fitted.save: {"path": folder / "other"},
        files.open_source: {"path": folder},
        files.load_model: {"path": folder / "model"},
        files.Checkpoint: {"path": folder / "kept", "interval": 1.0},
        metrics.evaluate: ROWS | {"metrics": ["pap@2", "ndcg@3"], "preset": "icml2020"},
        metrics.evaluate_frame: {"frame": FRAME, "metrics": "pap@2", "item": "item_id"},
        metrics.interval: drawn | {"table": table, "metric": "ap", "method": "kl", "level": 0.9},
        metrics.compare: drawn | {"first": table, "second": table, "metrics": ["ap"], "level": 0.9},
        table.mean: {"metric": "ap"},
        table.summary: {"metric": "ap"},
        metrics.scorer: {"metric": "ap"},
        plots.PAPDisplay.from_predictions: PREDICTED | drawn,
        plots.convergence_figure: {"runs": runs},
        rankers.compare: {"data": LISTS, "surrogates": ["ts"], "k": 2, "alpha": 1.0,
                          "solvers": ["cutting_plane"], "tol": 1e-2},
        diagnosis.diagnose: {"risk": RISK},
        diagnosis.critical_depth: {"risk": RISK},
        oracles.StreamedRisk: {"surrogate": TS, "source": source, "memory_budget": 1 << 20},
        datasets.engagement_lists: {"n_users": 5, "n_features": 2, "mean_items": 9.0},
        datasets.linear_lists: {"n_users": 5, "n_items": 8, "n_features": 2},
        datasets.interaction_pairs: {"n_users": 9, "n_items": 20, "n_tastes": 2},
        datasets.margin_lists: {"condition": "weak", "n_pos": 4, "n_neg": 6, "k": 2},
        datasets.digit_queries: {"n_queries": 3, "n_shown": 5},
        datasets.retrieval_runs: {},
        fusion.join_lists: {"runs": RUNS, "judgments": JUDGED, "on": ("query", "document")},
        fusion.cross_validate: {"runs": RUNS, "judgments": JUDGED, "k": 2, "cv": 2, "level": 0.9,
                                "relevance_threshold": 1.0, "n_resamples": 20, "n_refits": 2,
                                "ablate": False, "random_state": 0},
        fusion.for_engine: {"engine": "qdrant", "runs": RUNS, "judgments": JUDGED, "k": 2, "cv": 2,
                            "level": 0.9, "relevance_threshold": 1.0, "n_resamples": 20, "depth": 9,
                            "ablate": False, "random_state": 0},
        fusion.fuse: {"weights": WEIGHTS, "lists": {"a": {"x": 1.0}}},
        fusion.load_weights: {"path": folder / "w.json"},
        fusion.rrf: {"joined": fusion.join_lists(RUNS), "k": 60},
        fusion.combsum: {"joined": fusion.join_lists(RUNS)},
        fusion.write_run: {"path": folder / "b.run", "frame": read_lines(folder / "a.run", RUN),
                           "tag": "t"},
        bounds.held_out: {"scores": SCORES, "labels": Y, "k": 2},
        bounds.many_users: drawn | {"values": RNG.random(30)},
        bounds.uniform: {"n_pos": 100, "n_neg": 100, "k": 9, "n_features": 2},
        bounds.required_items: {"half_width": 0.3, "top_share": 0.1, "n_features": 2},
        bounds.required_users: {"half_width": 0.1},
        bounds.stability: {"risk": RISK, "result": sp.CuttingPlane(1.0, 1e-3).solve(RISK)},
        margins.check_scores: {"scores": SCORES, "labels": Y, "k": 2},
        margins.find_scorer: {"X": X[:6], "y": Y[:6], "k": 2, "condition": "weak",
                              "time_limit": 5.0},
        propositions.verify: {"ids": [], "effort": "quick"},
        integrations.lightgbm_eval_metric: {"name": "ap"},
        integrations.lightgbm_feval: {"name": "ap"},
        integrations.xgboost_custom_metric: {"name": "ap"},
    }  # fmt: skip


def is_ours(error):
    """Whether the package itself raised an error."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return isinstance(error, InputError) or (
        type(error) is TypeError and "structsvm_papk" in last.filename and "raise" in last.line
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("every", [12, slow(1)])
def test_wrong_arguments_end_in_a_sentence(tmp_path, monkeypatch, every):
    """Every day, each argument gets every twelfth value, beginning with another one."""
    monkeypatch.chdir(tmp_path)  # a path of text is a path
    faults = []
    for call, valid in cases(tmp_path):
        call(**valid)
        for number, name in enumerate(valid):
            for what, value in list(WRONG.items())[number % every :: every]:
                if (name, what) in LONG:
                    continue
                try:
                    call(**valid | {name: value})
                except Exception as error:
                    if not is_ours(error):
                        place = traceback.extract_tb(error.__traceback__)[-1]
                        faults.append(f"{call} {name}={what}: {error!r} at {place}")
    if "matplotlib.pyplot" in sys.modules:  # of displays; many open ones are a warning elsewhere
        sys.modules["matplotlib.pyplot"].close("all")
    assert not faults, "\n".join(faults)


def test_every_supported_name_is_tried_or_only_returned(tmp_path):
    tried = {getattr(call, "__name__", "") for call, _ in cases(tmp_path)}
    tried |= {"PAPDisplay"}
    for path in listed():
        for name, value in supported(path).items():
            returned = is_dataclass(value) or isinstance(value, (str, tuple, dict))
            abstract = name in {"Surrogate", "Oracle", "BlockOracle"}
            errors = isinstance(value, type) and issubclass(value, Exception)
            assert name in tried or returned or abstract or errors, name
