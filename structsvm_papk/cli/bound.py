"""``bound``: how far the risk on a sample can be from the population's.

Four questions: for all scorers of a class (from sizes), for one scorer (from held-out data), for a
model on new users (from its training data), and how many items or users a given width needs.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk import bounds
from structsvm_papk.bounds.class_bound import FORMS, theorem2_counterexamples
from structsvm_papk.bounds.intervals import MANY_USERS
from structsvm_papk.bounds.planning import plot_uniform, sampled_target
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import Panel
from structsvm_papk.cli._shared.scores import Scorer, scores_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.readers import Table
from structsvm_papk.data.user_scaling import scaled_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import Model, load_model
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.propositions.optimising import list_risks
from structsvm_papk.rankers import PAPKRanker
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.surrogates import SURROGATES, make_surrogate

_BOUND = Panel("Which bound")
_SIZES = Panel("Sizes")
_ALPHAS = (0.3, 1.0, 3.0, 10.0, 30.0)  # times the model's
_DEPTHS = (None, 0.5, 0.9)


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
    search: bool = _BOUND(
        False,
        "With MODEL DATA: the bound of refits at other alphas and depths too.",
        flags="--search",
    ),
    policy: str = options.policy("exclude"),
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
    if len(given) < 2 and (held_out is not None or search):
        raise InputError("--held-out and --search go with a model and its training data")
    if len(given) == 2:
        answer = _of_new_users(
            given[0], given[1], held_out, sizes.target, search, form.rho, policy, reading
        )
    elif sizes.sampled is not None:
        answer = _sampled(sizes)
    elif sizes.target is not None:
        answer = _how_many(sizes, form.rho)
    elif given:
        answer = _held_out(given[0], sizes.k, form, scorer, policy, reading)
    else:
        answer = _uniform(sizes, form, plot)
    console.answer(as_json, answer, _show, answer)


def _sampled(sizes: Sizes) -> dict[str, Any]:
    if sizes.n_neg is None or sizes.k is None:
        raise InputError("give --n-neg, the negatives of the full list, and --k with --sampled")
    found = sampled_target(sizes.n_neg, sizes.sampled or 0, sizes.k)
    return {"kind": "sampled negatives", **found.as_dict()}


def _uniform(sizes: Sizes, form: Form, plot: Path | None) -> dict[str, Any]:
    if sizes.n_pos is None or sizes.n_neg is None or sizes.k is None:
        raise InputError("give --n-pos, --n-neg and --k; or a data file; or --target")
    options.check_plot(plot)
    given = (sizes.n_pos, sizes.n_neg, sizes.k, sizes.n_features, sizes.vc_dim, form.rho)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bounds.NotGuaranteedWarning)  # the note says it
        result = bounds.uniform(
            *given, form.form, not form.one_sided, form.gamma, constant=form.constant
        )
    answer = {"kind": "uniform", **result.as_dict()}
    if form.gamma == "paper":
        answer["counterexamples"] = theorem2_counterexamples()
    options.save_plot(plot, lambda: plot_uniform(*given))
    return answer


def _held_out(
    data: Path, k: int | None, form: Form, scorer: Scorer, policy: str, reading: options.Reading
) -> dict[str, Any]:
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
    fields = interval.as_dict()
    kind = "one list" if lists.n_users == 1 else "mean over users"
    return {
        "kind": kind, "n_users": fields.pop("n_users"), "risk": fields.pop("value"), **fields,
    }  # fmt: skip


def _how_many(sizes: Sizes, rho: float) -> dict[str, Any]:
    """Items of one list for the bounds of lists, users for the bounds of means over users."""
    target: Any = sizes.target
    of_class = sizes.n_features, sizes.vc_dim
    forms = ["dkw"] if of_class == (None, None) else [*FORMS, "dkw"]
    shape = sizes.top_share, sizes.pos_per_neg
    items = {form: bounds.required_items(target, *shape, rho, form, *of_class) for form in forms}
    users = {m: bounds.required_users(target, rho, m) for m in MANY_USERS[:3]}
    return {"kind": "how many", "target": target, "rho": rho, "items": items, "users": users}


def _show(answer: dict[str, Any]) -> None:
    kinds = {
        "how many": _show_sizes,
        "uniform": _show_uniform,
        "new users": _show_new_users,
        "sampled negatives": _show_sampled,
    }
    kinds.get(answer["kind"], _show_interval)(answer)
    for example in answer.get("counterexamples", []):
        console.warn(
            f"counterexample to “{example['claim']}”: {example['setting']}: population value "
            f"{example['population']:.4g}, empirical {example['empirical']:.4g} ({example['why']})"
        )


def _show_sampled(answer: dict[str, Any]) -> None:
    k, full = answer["k"], answer["effective_k"]
    rows = [
        ("estimates, softly, on the full list", f"pAp@{full}"),
        (f"  off from pAp@{full} by at most", f"{answer['off']:.3f}"),
        (f"  off from pAp@{k} by at most", f"{answer['off_from_k']:.3f}"),
        ("half of its weight is on the first", f"{answer['place_50%']:,} negatives"),
        ("95% are on the first", f"{answer['place_95%']:,} negatives"),
    ]
    title = f"Mean of pAp@{k} over {answer['n_sampled']:,} of {answer['n_neg']:,} negatives"
    console.print_table(title, ("quantity", ">value"), rows)


def _show_sizes(answer: dict[str, Any]) -> None:
    rows = []
    for form, need in answer["items"].items():
        kind = "one list, fixed scorer, " if form == "dkw" else "one list, all scorers, "
        rows.append((kind + form, *(f"{need[n]:,}" for n in ("n_pos", "n_neg", "k")), ""))
    for method, need in answer["users"].items():
        rows.append((f"mean over users, {method}", "", "", "", f"{need:,}"))
    title = f"Sizes for a half-width of {answer['target']:g} at level {1 - answer['rho']:g}"
    console.print_table(title, ("bound", ">n_pos", ">n_neg", ">k", ">users"), rows)


def _show_uniform(answer: dict[str, Any]) -> None:
    title = "|R - R^| for all scorers at once" if answer["two_sided"] else "R - R^, one-sided"
    rows = [
        ("half-width", _unless_vacuous(answer, f"{answer['half_width']:.6g}")),
        ("form", answer["form"]),
        ("a = share of positives", f"{answer['gamma_pos']:.6g}"),
        ("b = share of negatives", f"{answer['gamma_neg']:.6g}"),
        ("VC dimension", str(answer["vc_dim"])),
        ("level", f"{1 - answer['rho']:g}"),
        ("guaranteed", _guaranteed(answer)),
    ]
    console.print_table(title, ("quantity", ">value"), rows)


def _show_interval(answer: dict[str, Any]) -> None:
    rows = [
        ("users", str(answer["n_users"])),
        ("risk on this data", f"{answer['risk']:.6g}"),
        ("interval", _unless_vacuous(answer, f"{answer['lower']:.6g} .. {answer['upper']:.6g}")),
        ("level", f"{answer['level']:g}"),
        ("method", answer["method"]),
        ("guaranteed", _guaranteed(answer)),
    ]
    console.print_table(f"Population risk, {answer['kind']}", ("quantity", ">value"), rows)


def _unless_vacuous(answer: dict[str, Any], text: str) -> str:
    return "vacuous: says nothing" if answer["vacuous"] else text


def _guaranteed(answer: dict[str, Any]) -> str:
    return "yes" if answer["guaranteed"] else f"no: {answer['note']}"


def _of_new_users(
    model_file: Path, data: Path, held_out: Path | None, target: float | None, search: bool,
    rho: float, policy: str, reading: options.Reading,
) -> dict[str, Any]:  # fmt: skip
    """The bound by stability, beside an interval of held-out users and the uniform bound."""
    model = load_model(model_file)
    if model.surrogate not in SURROGATES:
        raise InputError(
            f"{model_file} is of surrogate {model.surrogate!r}, of which the file holds the name "
            "only: in Python bounds.stability(risk, result) takes the surrogate itself"
        )
    table = reading.table(data, model)
    options.say_columns(table)
    lists = scaled_lists(reading.lists(table).weighted(model.user_weight), model.user_scaling)
    lists = lists.standardized() if model.standardized else lists
    surrogate = make_surrogate(model.surrogate, model.k, model.depth)
    risk = ListRisk(surrogate, lists, policy)
    found = bounds.stability(risk, _result_of(model, risk.column_scale))
    answer = {"kind": "new users", **found.as_dict(), "surrogate": model.surrogate}
    users = risk.data
    sizes = int(users.n_pos.sum()), int(users.n_neg.sum()), model.k * users.n_users
    beside = bounds.uniform(*sizes, n_features=model.n_features, rho=rho)
    uniform = {"half_width": beside.half_width, "vacuous": beside.vacuous, "level": 1 - rho}
    answer |= {"depth": model.depth, "uniform": uniform}
    if target is not None:
        n_users = found.users_for(target)
        answer |= {"target": target, "users_for_target": n_users if n_users < np.inf else None}
    if held_out is not None:
        answer["held_out"] = _interval(held_out, table, model, rho, reading)
    if search:
        answer["search"] = _searched(lists, model, policy)
    return answer


def _result_of(model: Model, scale: Any) -> SolverResult:
    """The fit as its solver returned it, for the columns that it saw."""
    proof = model.certificate
    bound = -np.inf if proof["lower_bound"] is None else proof["lower_bound"]
    w = model.coef if scale is None else model.coef * scale
    return SolverResult(w, proof["objective"], bound, Status(proof["status"]), (), model.alpha)


def _interval(
    path: Path, table: Table, model: Model, rho: float, reading: options.Reading
) -> dict[str, Any]:
    other = reading.second_table(path, table)
    assert other is not None  # as there is a path
    lists = reading.lists(other).usable(model.k)
    values = list_risks(lists, scores_of(model, other)[lists.rows], model.k)
    return bounds.many_users(values, rho).as_dict()


def _searched(lists: RankingData, model: Model, policy: str) -> list[dict[str, Any]]:
    """Bounds at other strengths and depths, smallest first."""
    rows = []
    for depth in dict.fromkeys([model.depth, *_DEPTHS]):
        for factor in _ALPHAS:
            ranker = PAPKRanker(
                model.k, model.surrogate, depth, alpha=factor * model.alpha, policy=policy,
                standardize=False,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = ranker.fit_lists(lists).result_
            found = bounds.stability(ListRisk(ranker.make_surrogate(), lists, policy), result)
            rows.append(
                {"alpha": result.alpha, "depth": depth, "risk": found.risk, "bound": found.bound}
            )
    return sorted(rows, key=lambda row: row["bound"])


def _show_new_users(answer: dict[str, Any]) -> None:
    """Print the table."""
    uniform, interval = answer["uniform"], answer.get("held_out")
    half = "says nothing" if uniform["vacuous"] else f"half-width {uniform['half_width']:.3g}"
    rows = [
        ("users that it was trained on", f"{answer['n_users']:,}"),
        ("their risk", f"{answer['risk']:.4f}"),
        ("a new user's risk, in expectation, at most", f"{answer['bound']:.4f}"),
        ("weights move without a user by at most", f"{answer['largest_distance']:.3g}"),
        ("  of which for the certificate's gap", f"{answer['from_gap']:.3g}"),
        (f"uniform bound at {uniform['level']:g}, all rows as one list", half),
    ]
    if interval is not None:
        ends = f"{interval['value']:.4f} [{interval['lower']:.4f}, {interval['upper']:.4f}]"
        users = f"{interval['n_users']:,} held-out users, {interval['level']:g}"
        rows.append((users, ends))
    if "target" in answer:
        n_users = answer["users_for_target"]
        text = "no number" if n_users is None else f"about {n_users:,.3g}"
        rows.append((f"users of this kind for {answer['target']:g}", text))
    console.print_table("Risk of new users", ("quantity", ">value"), rows)
    fixed = f", {answer['note']} taken as fixed" if answer["note"] else ""
    console.note(
        "assumed: users are drawn independently; alpha, surrogate and depth were not chosen by "
        f"these users{fixed}; weights of a new fit on one user less"
    )
    if "search" in answer:
        found = [
            (f"{row['alpha']:g}", str(row["depth"] or "k"), f"{row['risk']:.4f}",
             f"{row['bound']:.4f}")
            for row in answer["search"]
        ]  # fmt: skip
        console.print_table("Smallest first", (">alpha", ">depth", ">risk", ">bound"), found)
