"""``bound``: how far the risk on a sample can be from the population's.

Four questions: for all scorers of a class (from sizes), for one scorer (from held-out data), for a
model on new users (from its training data), and how many items or users a given width needs.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk import bounds
from structsvm_papk.bounds.class_bound import FORMS, theorem2_counterexamples
from structsvm_papk.bounds.intervals import MANY_USERS
from structsvm_papk.bounds.planning import plot_uniform, sampled_target
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import option
from structsvm_papk.cli._shared.scores import Scorer, scores_of
from structsvm_papk.data.column_scale import ScaleRule
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.user_scaling import scaled_lists
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.files.model import Model, load_model
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.propositions.optimising import list_risks
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.surrogates import SURROGATES, make_surrogate

_BOUND = partial(option, "Which bound")
_SIZES = partial(option, "Sizes")


@dataclass(frozen=True)
class Sizes:
    """Of one list, and of the class of scorers."""

    k: int | None = _SIZES(None, "Recommended items.", flags="--k")
    n_pos: int | None = _SIZES(None, "Positives.")
    n_neg: int | None = _SIZES(None, "Negatives.")
    n_features: int | None = _SIZES(None, "Linear scorers on R^p.")
    vc_dim: int | None = _SIZES(None, "VC dimension of another class.")
    sampled: int | None = _SIZES(
        None, "With --n-neg and --k: what pAp@k on so many sampled negatives estimates."
    )
    target: float | None = _SIZES(None, "How many items and users for this half-width?", "WIDTH")
    top_share: float = _SIZES(0.05, "With --target: k/n_neg.")
    pos_per_neg: float = _SIZES(0.25, "With --target: n_pos/n_neg.")

    def __post_init__(self) -> None:
        check_number("--target", self.target, above=0, below=1, optional=True)


@dataclass(frozen=True)
class Form:
    """Which bound."""

    rho: float = _BOUND(0.05, "Error probability, at most 1/2.")
    form: str = _BOUND("auto", "auto, c2 or k3.")
    one_sided: bool = _BOUND(False, "Upper bounds only.", flags="--one-sided")
    gamma: str = _BOUND("empirical", "empirical, or paper (not valid in general).")
    constant: float | None = _BOUND(None, "Another constant in c2 or k3.")
    method: str | None = _BOUND(
        None,
        "With data, one list: shift, dkw or asymptotic; several users: kl, hoeffding, bernstein or "
        "bootstrap.",
    )


@dataclass(frozen=True)
class _Answer:
    """The object that `--json` prints, and the table and remarks for people."""

    content: dict[str, Any]
    title: str
    rows: Sequence[Sequence[str]]
    columns: Sequence[str] = ("quantity", ">value")
    warnings: Sequence[str] = ()
    note: str = ""

    def show(self) -> None:
        console.print_table(self.title, self.columns, self.rows)
        for warning in self.warnings:
            console.warn(warning)
        if self.note:
            console.note(self.note)


def bound(
    *,
    sizes: Sizes,
    form: Form,
    scorer: Scorer,
    reading: options.Reading,
    files: list[Path] | None = options.argument(
        None,
        "Held-out data with --model or --scores: an interval for that scorer. A model file and the "
        "data that it was trained on: a bound for new users.",
        "[DATA | MODEL DATA]",
    ),
    held_out: Path | None = _BOUND(
        None, "With MODEL DATA: an interval from these users beside it."
    ),
    policy: str | None = options.policy(None),
    plot: Path | None = options.PLOT,
    as_json: bool = options.JSON,
) -> None:
    """How far can the risk on a sample be from the population's?

    For all scorers of a class at once (from sizes; --plot draws it against k and n), for one scorer
    (from held-out data), on new users (from a model and its training data), or which sizes a width
    needs (--target).
    """
    given = files or []
    if len(given) > 2:
        raise InputError(
            f"{len(given)} files: give held-out data, or a model and its training data"
        )
    if len(given) < 2 and held_out is not None:
        raise InputError("--held-out goes with a model and its training data")
    if len(given) == 2:
        answer = _of_new_users(
            model_file=given[0],
            data=given[1],
            held_out=held_out,
            target=sizes.target,
            rho=form.rho,
            policy=policy or "cap",
            reading=reading,
        )
    elif sizes.sampled is not None:
        answer = _sampled(sizes)
    elif sizes.target is not None:
        answer = _how_many(sizes, form.rho)
    elif given:
        answer = _held_out(
            data=given[0],
            k=sizes.k,
            form=form,
            scorer=scorer,
            policy=policy or "exclude",
            reading=reading,
        )
    else:
        answer = _uniform(sizes, form, plot)
    console.answer(as_json, answer.content, answer.show)


def _sampled(sizes: Sizes) -> _Answer:
    if sizes.n_neg is None or sizes.k is None:
        raise InputError("give --n-neg, the negatives of the full list, and --k with --sampled")
    numbers = sampled_target(sizes.n_neg, sizes.sampled or 0, sizes.k).as_dict()
    k = numbers["k"]
    full = numbers["effective_k"]
    rows = [
        ("estimates, softly, on the full list", f"pAp@{full}"),
        (f"  off from pAp@{full} by at most", f"{numbers['off']:.3f}"),
        (f"  off from pAp@{k} by at most", f"{numbers['off_from_k']:.3f}"),
        ("half of its weight is on the first", f"{numbers['place_50%']:,} negatives"),
        ("95% are on the first", f"{numbers['place_95%']:,} negatives"),
    ]
    title = f"Mean of pAp@{k} over {numbers['n_sampled']:,} of {numbers['n_neg']:,} negatives"
    return _Answer({"kind": "sampled negatives", **numbers}, title, rows)


def _uniform(sizes: Sizes, form: Form, plot: Path | None) -> _Answer:
    if sizes.n_pos is None or sizes.n_neg is None or sizes.k is None:
        raise InputError("give --n-pos, --n-neg and --k; or a data file; or --target")
    options.check_plot(plot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bounds.NotGuaranteedWarning)  # the note says it
        result = bounds.uniform(
            sizes.n_pos,
            sizes.n_neg,
            sizes.k,
            n_features=sizes.n_features,
            vc_dim=sizes.vc_dim,
            rho=form.rho,
            form=form.form,
            two_sided=not form.one_sided,
            gamma=form.gamma,
            constant=form.constant,
        )
    content = {"kind": "uniform", **result.as_dict()}
    remarks = []
    if form.gamma == "paper":
        content["counterexamples"] = theorem2_counterexamples()
        remarks = [
            f"counterexample to “{example['claim']}”: {example['setting']}: population value "
            f"{example['population']:.4g}, empirical {example['empirical']:.4g} ({example['why']})"
            for example in content["counterexamples"]
        ]
    draw = partial(
        plot_uniform,
        sizes.n_pos,
        sizes.n_neg,
        sizes.k,
        n_features=sizes.n_features,
        vc_dim=sizes.vc_dim,
        rho=form.rho,
    )
    options.save_plot(plot, draw)
    rows = [
        ("half-width", _unless_vacuous(result, f"{result.half_width:.6g}")),
        ("form", result.form),
        ("a = share of positives", f"{result.gamma_pos:.6g}"),
        ("b = share of negatives", f"{result.gamma_neg:.6g}"),
        ("VC dimension", str(result.vc_dim)),
        ("level", f"{1 - result.rho:g}"),
        ("guaranteed", _guaranteed(result)),
    ]
    title = "|R - R^| for all scorers at once" if result.two_sided else "R - R^, one-sided"
    return _Answer(content, title, rows, warnings=remarks)


def _held_out(
    *,
    data: Path,
    k: int | None,
    form: Form,
    scorer: Scorer,
    policy: str,
    reading: options.Reading,
) -> _Answer:
    if k is None:
        raise InputError("give --k, the number of recommended items")
    if not scorer.given:
        raise InputError("an interval is for one scorer: give --model or --scores")
    model = scorer.load()
    table = reading.table(data, model)
    lists = reading.lists(table).usable(k, policy)
    all_scores: Any = scorer.of(table, model, reading.one_list)
    scores = all_scores[lists.rows]
    options.say_columns(table)
    if lists.n_users == 1:
        labels = lists.labels.astype(int)
        interval = bounds.held_out(scores, labels, k, form.rho, form.method or "shift")
    else:
        interval = bounds.many_users(list_risks(lists, scores, k), form.rho, form.method or "kl")
    numbers = interval.as_dict()
    kind = "one list" if lists.n_users == 1 else "mean over users"
    content = {
        "kind": kind,
        "n_users": numbers.pop("n_users"),
        "risk": numbers.pop("value"),
        **numbers,
    }
    rows = [
        ("users", str(interval.n_users)),
        ("risk on this data", f"{interval.value:.6g}"),
        ("interval", _unless_vacuous(interval, f"{interval.lower:.6g} .. {interval.upper:.6g}")),
        ("level", f"{interval.level:g}"),
        ("method", interval.method),
        ("guaranteed", _guaranteed(interval)),
    ]
    return _Answer(content, f"Population risk, {kind}", rows)


def _unless_vacuous(result: Any, text: str) -> str:
    return "vacuous: says nothing" if result.vacuous else text


def _guaranteed(result: Any) -> str:
    return "yes" if result.guaranteed else f"no: {result.note}"


def _how_many(sizes: Sizes, rho: float) -> _Answer:
    """Items of one list for the bounds of lists, users for the bounds of means over users."""
    target: Any = sizes.target
    forms = ["dkw"]  # of one scorer; the others need the class
    if sizes.n_features is not None or sizes.vc_dim is not None:
        forms = [*FORMS, "dkw"]
    items = {}
    for form in forms:
        items[form] = bounds.required_items(
            target,
            sizes.top_share,
            sizes.pos_per_neg,
            rho=rho,
            form=form,
            n_features=sizes.n_features,
            vc_dim=sizes.vc_dim,
        )
    users = {method: bounds.required_users(target, rho, method) for method in MANY_USERS[:3]}
    rows = []
    for form, needed in items.items():
        kind = "one list, fixed scorer, " if form == "dkw" else "one list, all scorers, "
        counts = (f"{needed['n_pos']:,}", f"{needed['n_neg']:,}", f"{needed['k']:,}")
        rows.append((kind + form, *counts, ""))
    for method, n_users in users.items():
        rows.append((f"mean over users, {method}", "", "", "", f"{n_users:,}"))
    title = f"Sizes for a half-width of {target:g} at level {1 - rho:g}"
    content = {"kind": "how many", "target": target, "rho": rho, "items": items, "users": users}
    return _Answer(content, title, rows, ("bound", ">n_pos", ">n_neg", ">k", ">users"))


def _of_new_users(
    *,
    model_file: Path,
    data: Path,
    held_out: Path | None,
    target: float | None,
    rho: float,
    policy: str,
    reading: options.Reading,
) -> _Answer:
    """The bound by stability, beside an interval of held-out users and the uniform bound."""
    model = _model_of_the_package(model_file)
    table = reading.table(data, model)
    options.say_columns(table)
    lists = _as_in_training(reading.lists(table), model)
    surrogate = make_surrogate(model.surrogate, model.k, model.depth)
    risk = EmpiricalRisk(surrogate, lists, policy)
    answer = bounds.stability(risk, _result_of(model, risk.column_scale))
    users = risk.data
    uniform = bounds.uniform(
        n_pos=int(users.n_pos.sum()),
        n_neg=int(users.n_neg.sum()),
        k=model.k * users.n_users,
        n_features=model.n_features,
        rho=rho,
    )
    content = {
        "kind": "new users",
        **answer.as_dict(),
        "surrogate": model.surrogate,
        "depth": model.depth,
        "uniform": {
            "half_width": uniform.half_width, "vacuous": uniform.vacuous, "level": 1 - rho
        },
    }  # fmt: skip
    half_width = "says nothing" if uniform.vacuous else f"half-width {uniform.half_width:.3g}"
    rows = [
        ("users that it was trained on", f"{answer.n_users:,}"),
        ("their risk", f"{answer.risk:.4f}"),
        ("a new user's risk, in expectation, at most", f"{answer.bound:.4f}"),
        ("weights move without a user by at most", f"{answer.distances.max():.3g}"),
        ("  of which for the certificate's gap", f"{answer.from_gap:.3g}"),
        (f"uniform bound at {1 - rho:g}, all rows as one list", half_width),
    ]
    if held_out is not None:
        other_table = reading.second_table(held_out, table)
        others = reading.lists(other_table).usable(model.k)
        scores = scores_of(model, other_table)
        interval = bounds.many_users(list_risks(others, scores[others.rows], model.k), rho)
        content["held_out"] = interval.as_dict()
        ends = f"{interval.value:.4f} [{interval.lower:.4f}, {interval.upper:.4f}]"
        rows.append((f"{interval.n_users:,} held-out users, {interval.level:g}", ends))
    if target is not None:
        n_users = answer.users_for(target)
        content |= {"target": target, "users_for_target": None}
        needed = "no number"
        if n_users < np.inf:
            content["users_for_target"] = n_users
            needed = f"about {n_users:,.3g}"
        rows.append((f"users of this kind for {target:g}", needed))
    fixed = f", {answer.note} taken as fixed" if answer.note else ""
    note = (
        "assumed: users are drawn independently; alpha, surrogate and depth were not chosen by "
        f"these users{fixed}; weights of a new fit on one user less"
    )
    return _Answer(content, "Risk of new users", rows, note=note)


def _model_of_the_package(file: Path) -> Model:
    """A model whose file holds all of its problem but the data."""
    model = load_model(file)
    if model.surrogate not in SURROGATES:
        raise InputError(
            f"{file} is of surrogate {model.surrogate!r}, of which the file holds the name only: "
            "in Python bounds.stability(risk, result) takes the surrogate itself"
        )
    if model.user_weight == "given":
        raise InputError(
            f"{file} was trained with weights of users that the file does not hold: in Python "
            "bounds.stability(risk, result) takes a risk of weighted lists"
        )
    return model


def _as_in_training(lists: RankingData, model: Model) -> RankingData:
    """Lists in the units, and with the weights of users, of the problem that the model solves."""
    every_column = np.arange(model.n_features)
    lists = lists.weighted(model.user_weight)
    how = model.user_scaling, model.missing, every_column, model.one_list
    lists = scaled_lists(lists, *how)
    if model.scale_rule is None:
        return lists
    return lists.scaled_by(lists.variation().scale(ScaleRule(model.scale_rule)))


def _result_of(model: Model, scale: Any) -> SolverResult:
    """The fit as its solver returned it, for the columns that it saw."""
    certificate = model.certificate
    bound = certificate["lower_bound"]
    w = model.list_weights()
    return SolverResult(
        w=w if scale is None else w * scale,
        objective=certificate["objective"],
        lower_bound=-np.inf if bound is None else bound,
        status=Status(certificate["status"]),
        alpha=model.alpha,
    )
