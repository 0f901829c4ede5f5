"""``bound``: how far the risk on a sample can be from the population's.

Four questions: for all scorers of a class (from sizes), for one scorer (from held-out data), for a
model on new users (from its training data), and how many items or users a given width needs.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk import bounds
from structsvm_papk.bounds.class_bound import FORMS, theorem2_counterexamples
from structsvm_papk.bounds.intervals import MANY_USERS
from structsvm_papk.bounds.planning import plot_uniform
from structsvm_papk.bounds.sampled import sampled_target
from structsvm_papk.cli import _stability
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.grouped import Panel
from structsvm_papk.cli._shared.scores import Scorer
from structsvm_papk.errors import InputError
from structsvm_papk.propositions.optimising import list_risks

_BOUND = Panel("Which bound")
_SIZES = Panel("Sizes")


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
    sizes: Sizes,
    form: Form,
    scorer: Scorer,
    reading: options.Reading,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DATA | MODEL DATA]",
            help="Held-out data with --model or --scores: an interval for that scorer. A model "
            "file and the data that it was trained on: a bound for new users.",
        ),
    ] = None,
    held_out: Annotated[
        Path | None,
        options.option(_BOUND, "With MODEL DATA: an interval from these users beside it."),
    ] = None,
    search: Annotated[
        bool,
        options.option(
            _BOUND,
            "With MODEL DATA: the bound of refits at other alphas and depths too.",
            "--search",
        ),
    ] = False,
    policy: options.Policy = "exclude",
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """How far can the risk on a sample be from the population's?

    For all scorers of a class at once (from sizes; --plot draws it against k and n), for one scorer
    (from held-out data), on new users (from a model and its training data), or which sizes a width
    needs (--target).
    """
    given = files or []
    _stability.refuse_unused(len(given), held_out, search)
    if len(given) == 2:
        answer = _stability.of_new_users(
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
    options.save_plot(plot, lambda: plot_uniform(*given)[0].figure)
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
        "new users": _stability.show,
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
