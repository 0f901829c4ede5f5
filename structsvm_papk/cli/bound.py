"""``bound``: how far the risk on a sample can be from the population's.

Three questions: for all scorers of a class (from sizes), for one scorer (from held-out data), and
how many items or users a given width needs.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk import bounds
from structsvm_papk.bounds.class_bound import FORMS
from structsvm_papk.bounds.intervals import MANY_USERS
from structsvm_papk.bounds.planning import plot_uniform
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.scores import Scorer
from structsvm_papk.errors import InputError
from structsvm_papk.plots.convergence import save_figure
from structsvm_papk.propositions.optimising import list_risks

_BOUND = "Which bound"
_SIZES = "Sizes"


def _size(help, *names):
    return typer.Option(*names, help=help, rich_help_panel=_SIZES)


def _which(help, *names):
    return typer.Option(*names, help=help, rich_help_panel=_BOUND)


@dataclass(frozen=True)
class Sizes:
    """Of one list, and of the class of scorers."""

    n_pos: Annotated[int | None, _size("Positives.")] = None
    n_neg: Annotated[int | None, _size("Negatives.")] = None
    k: Annotated[int | None, _size("Recommended items.", "--k")] = None
    n_features: Annotated[int | None, _size("Linear scorers on R^p.")] = None
    vc_dim: Annotated[int | None, _size("VC dimension of another class.")] = None
    top_share: Annotated[float, _size("With --target: k/n_neg.")] = 0.05
    pos_per_neg: Annotated[float, _size("With --target: n_pos/n_neg.")] = 0.25


@dataclass(frozen=True)
class Form:
    """Which bound."""

    form: Annotated[str, _which("auto, c2 or k3.")] = "auto"
    one_sided: Annotated[bool, _which("Upper bounds only.", "--one-sided")] = False
    gamma: Annotated[str, _which("empirical, or paper (not valid in general).")] = "empirical"
    constant: Annotated[float | None, _which("Another constant in c2 or k3.")] = None
    method: Annotated[
        str | None,
        _which(
            "With data, one list: shift, dkw or asymptotic; several users: kl, hoeffding, "
            "bernstein or bootstrap."
        ),
    ] = None


def bound(
    sizes: Sizes,
    form: Form,
    scorer: Scorer,
    reading: options.Reading,
    data: Annotated[
        Path | None,
        typer.Argument(help="Held-out data with --model or --scores: an interval for that scorer."),
    ] = None,
    rho: Annotated[float, typer.Option(help="Error probability, at most 1/2.")] = 0.05,
    target: Annotated[
        float | None,
        typer.Option(metavar="WIDTH", help="How many items and users for this half-width?"),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the uniform bounds against k and n here."),
    ] = None,
    policy: options.Policy = "exclude",
    as_json: options.Json = False,
):
    """How far can the risk on a sample be from the population's?

    For all scorers of a class at once (from sizes), for one scorer (from held-out data), or which
    sizes a width needs (--target).
    """
    if target is not None:
        answer = _how_many(target, sizes, rho)
    elif data is not None:
        answer = _held_out(data, sizes.k, rho, form.method, scorer, policy, reading)
    else:
        answer = _uniform(sizes, form, rho, plot)
    if as_json:
        console.print_json(answer)
    else:
        _print(answer)


def _uniform(sizes, form, rho, plot):
    given = sizes.n_pos, sizes.n_neg, sizes.k, sizes.n_features, sizes.vc_dim, rho
    if None in given[:3]:
        raise InputError("give --n-pos, --n-neg and --k; or a data file; or --target")
    options.check_plot(plot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bounds.NotGuaranteedWarning)  # the note says it
        result = bounds.uniform(
            *given, form.form, not form.one_sided, form.gamma, constant=form.constant
        )
    answer = {"kind": "uniform", **result.as_dict()}
    if form.gamma == "paper":
        answer["counterexamples"] = bounds.theorem2_counterexamples()
    if plot is not None:
        save_figure(plot_uniform(*given)[0].figure, plot)
        console.note(f"plot written to {plot}")
    return answer


def _held_out(data, k, rho, method, scorer, policy, reading):
    if k is None:
        raise InputError("give --k, the number of recommended items")
    if not scorer.given:
        raise InputError("an interval is for one scorer: give --model or --scores")
    model = scorer.load()
    table = reading.table(data, model)
    lists = reading.lists(table).usable(k, policy)
    scores = scorer.of(table, model)[lists.rows]
    options.say_columns(table)
    if lists.n_users == 1:
        labels = lists.labels.astype(int)
        kind, interval = "one list", bounds.held_out(scores, labels, k, rho, method or "shift")
    else:
        kind = "mean over users"
        interval = bounds.many_users(list_risks(lists, scores, k), rho, method or "kl")
    fields = interval.as_dict()
    return {
        "kind": kind, "n_users": fields.pop("n_users"), "risk": fields.pop("value"), **fields,
    }  # fmt: skip


def _how_many(target, sizes, rho):
    """Items of one list for the bounds of lists, users for the bounds of means over users."""
    of_class = sizes.n_features, sizes.vc_dim
    forms = ["dkw"] if of_class == (None, None) else [*FORMS, "dkw"]
    shape = sizes.top_share, sizes.pos_per_neg
    items = {form: bounds.required_items(target, *shape, rho, form, *of_class) for form in forms}
    users = {m: bounds.required_users(target, rho, m) for m in MANY_USERS[:3]}
    return {"kind": "how many", "target": target, "rho": rho, "items": items, "users": users}


def _print(answer):
    shown = {"how many": _print_sizes, "uniform": _print_uniform}
    shown.get(answer["kind"], _print_interval)(answer)
    for example in answer.get("counterexamples", []):
        console.note(
            f"counterexample to “{example['claim']}”: {example['setting']}: population value "
            f"{example['population']:.4g}, empirical {example['empirical']:.4g} ({example['why']})",
            style="yellow",
        )


def _print_sizes(answer):
    rows = []
    for form, need in answer["items"].items():
        kind = "one list, fixed scorer, " if form == "dkw" else "one list, all scorers, "
        rows.append((kind + form, *(f"{need[n]:,}" for n in ("n_pos", "n_neg", "k")), ""))
    for method, need in answer["users"].items():
        rows.append((f"mean over users, {method}", "", "", "", f"{need:,}"))
    title = f"Sizes for a half-width of {answer['target']:g} at level {1 - answer['rho']:g}"
    console.print_table(title, ("bound", ">n_pos", ">n_neg", ">k", ">users"), rows)


def _print_uniform(answer):
    title = "|R - R^| for all scorers at once" if answer["two_sided"] else "R - R^, one-sided"
    width = "vacuous: says nothing" if answer["vacuous"] else f"{answer['half_width']:.6g}"
    rows = [
        ("half-width", width),
        ("form", answer["form"]),
        ("a = share of positives", f"{answer['gamma_pos']:.6g}"),
        ("b = share of negatives", f"{answer['gamma_neg']:.6g}"),
        ("VC dimension", str(answer["vc_dim"])),
        ("level", f"{1 - answer['rho']:g}"),
        ("guaranteed", _guaranteed(answer)),
    ]
    console.print_table(title, ("quantity", ">value"), rows)


def _print_interval(answer):
    interval = f"{answer['lower']:.6g} .. {answer['upper']:.6g}"
    rows = [
        ("users", str(answer["n_users"])),
        ("risk on this data", f"{answer['risk']:.6g}"),
        ("interval", "vacuous: says nothing" if answer["vacuous"] else interval),
        ("level", f"{answer['level']:g}"),
        ("method", answer["method"]),
        ("guaranteed", _guaranteed(answer)),
    ]
    console.print_table(f"Population risk, {answer['kind']}", ("quantity", ">value"), rows)


def _guaranteed(answer):
    return "yes" if answer["guaranteed"] else f"no: {answer['note']}"
