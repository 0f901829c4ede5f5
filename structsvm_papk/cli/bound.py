"""``bound``: how far the risk on a sample can be from the population's.

Four questions, a command each: for all scorers of a class (from sizes), for one scorer (from
held-out data), for a model on new users (from its training data), and how many items or users a
given width needs.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from structsvm_papk import bounds
from structsvm_papk.bounds.class_bound import FORMS, NotGuaranteedWarning
from structsvm_papk.bounds.intervals import MANY_USERS
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.reading import Reading, say_columns
from structsvm_papk.cli._shared.records import with_records
from structsvm_papk.cli._shared.scores import scores_of
from structsvm_papk.data.columns.pairs import PairCuts
from structsvm_papk.data.columns.units import ScaleRule
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.files.model import Model, load_model
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.propositions.optimising import list_risks
from structsvm_papk.rankers.in_columns import InColumns, TrainingColumns
from structsvm_papk.rankers.settings import Setting
from structsvm_papk.solvers.solver import SolverResult, Status
from structsvm_papk.surrogates import make_surrogate
from structsvm_papk.surrogates.losses import SURROGATES

_bound_option = partial(typer.Option, rich_help_panel="Which bound")
_sizes_option = partial(typer.Option, rich_help_panel="Sizes")

bound = typer.Typer(
    name="bound",
    help="Bound the difference between the risk on a sample and in the population.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Rho = Annotated[float, _bound_option(help="Error probability, at most 1/2.")]


@bound.command("uniform")
@with_records
def uniform(
    *,
    n_pos: Annotated[int, _sizes_option(help="Positives.")],
    n_neg: Annotated[int, _sizes_option(help="Negatives.")],
    k: Annotated[int, _sizes_option("--k", help="Recommended items.")],
    n_features: Annotated[int, _sizes_option(help="Linear scorers on R^p.")],
    rho: Rho = 0.05,
    gamma: Annotated[
        str, _bound_option(help="empirical, or paper (not valid in general).")
    ] = "empirical",
    as_json: options.Json = False,
) -> None:
    """For all scorers of a class at once, from sizes of one list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGuaranteedWarning)  # the note says it
        result = bounds.uniform(n_pos, n_neg, k, n_features=n_features, rho=rho, gamma=gamma)
    content = {"kind": "uniform", **result.as_dict()}
    rows = [
        ("half-width", _unless_vacuous(result, f"{result.half_width:.6g}")),
        ("form", result.form),
        ("a = share of positives", f"{result.gamma_pos:.6g}"),
        ("b = share of negatives", f"{result.gamma_neg:.6g}"),
        ("VC dimension", str(result.vc_dim)),
        ("level", f"{1 - result.rho:g}"),
        ("guaranteed", _guaranteed(result)),
    ]
    console.answer(as_json, content, _show, "|R - R^| for all scorers at once", rows)


@bound.command("held-out")
@with_records
def held_out(
    *,
    data: options.Data,
    k: options.K,
    model: Annotated[Path, typer.Option(help="Score with this model file.", metavar="MODEL")],
    reading: Reading,
    rho: Rho = 0.05,
    as_json: options.Json = False,
) -> None:
    """For one model that was fixed before: an interval from held-out DATA."""
    scorer = load_model(model)
    table = reading.table(data, scorer)
    lists = reading.lists(table).usable(k)
    scores_of_rows = scores_of(scorer, table, reading.one_list)[lists.rows]
    say_columns(table)
    if lists.n_users == 1:
        kind = "one list"
        labels = lists.labels.astype(int)
        interval = bounds.held_out(scores_of_rows, labels, k, rho)
    else:
        kind = "mean over users"
        risks = list_risks(lists, scores_of_rows, k)
        interval = bounds.many_users(risks, rho)
    numbers = interval.as_dict()
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
    console.answer(as_json, content, _show, f"Population risk, {kind}", rows)


@bound.command("sizes")
@with_records
def sizes(
    *,
    target: Annotated[float, typer.Argument(help="Target half-width.", metavar="WIDTH")],
    top_share: Annotated[float, _sizes_option(help="k/n_neg.")] = 0.05,
    pos_per_neg: Annotated[float, _sizes_option(help="n_pos/n_neg.")] = 0.25,
    n_features: Annotated[int | None, _sizes_option(help="Linear scorers on R^p.")] = None,
    rho: Rho = 0.05,
    as_json: options.Json = False,
) -> None:
    """How many items, and how many users, a half-width needs."""
    check_number("WIDTH", target, above=0, below=1)
    forms = ["dkw"]  # of one scorer; the others need the class
    if n_features is not None:
        forms = [*FORMS, "dkw"]
    items = {}
    for form in forms:
        items[form] = bounds.required_items(
            target,
            top_share,
            pos_per_neg,
            rho=rho,
            form=form,
            n_features=n_features,
        )
    users = {method: bounds.required_users(target, rho, method) for method in MANY_USERS[:3]}
    rows = []
    for form, needed in items.items():
        kind = "one list, fixed scorer, " if form == "dkw" else "one list, all scorers, "
        counts = (f"{needed['n_pos']:,}", f"{needed['n_neg']:,}", f"{needed['k']:,}")
        rows.append((kind + form, *counts, ""))
    for method, n_users in users.items():
        rows.append((f"mean over users, {method}", "", "", "", f"{n_users:,}"))
    content = {"kind": "how many", "target": target, "rho": rho, "items": items, "users": users}
    title = f"Sizes for a half-width of {target:g} at level {1 - rho:g}"
    columns = ("bound", ">n_pos", ">n_neg", ">k", ">users")
    console.answer(as_json, content, _show, title, rows, columns)


@bound.command("new-users")
@with_records
def new_users(
    *,
    model_file: Annotated[Path, typer.Argument(help="Model file written by fit.", metavar="MODEL")],
    data: Annotated[Path, typer.Argument(help="The data that it was trained on.")],
    reading: Reading,
    held_out: Annotated[
        Path | None,
        _bound_option(help="Also compute an interval from these held-out lists.", metavar="FILE"),
    ] = None,
    target: Annotated[
        float | None,
        _bound_option(help="Also compute how many users this bound needs.", metavar="WIDTH"),
    ] = None,
    rho: Rho = 0.05,
    as_json: options.Json = False,
) -> None:
    """For a model on new users, from its training data: a bound by stability.

    Also prints the uniform bound, and with --held-out an interval from users not seen in training.
    """
    check_number("--target", target, above=0, below=1, optional=True)
    model = _model_of_the_package(model_file)
    table = reading.table(data, model, dense=model.curves is not None)
    say_columns(table)
    columns = _as_in_training(reading.lists(table), model)
    surrogate = make_surrogate(model.surrogate, model.k, model.depth)
    risk = EmpiricalRisk(surrogate, columns.lists, "cap")
    answer = bounds.stability(risk, _result_of(model, columns))
    users = risk.data
    of_the_class = bounds.uniform(
        n_pos=int(users.n_pos.sum()),
        n_neg=int(users.n_neg.sum()),
        k=model.k * users.n_users,
        n_features=risk.n_features,  # of the weights: a curve and a pair have several
        rho=rho,
    )
    content = {
        "kind": "new users",
        **answer.as_dict(),
        "surrogate": model.surrogate,
        "depth": model.depth,
        "uniform": {
            "half_width": of_the_class.half_width,
            "vacuous": of_the_class.vacuous,
            "level": 1 - rho,
        },
    }
    half_width = _unless_vacuous(of_the_class, f"half-width {of_the_class.half_width:.3g}")
    rows = [
        ("users that it was trained on", f"{answer.n_users:,}"),
        ("their risk", f"{answer.risk:.4f}"),
        (
            "a new user's risk, in expectation, at most",
            _unless_vacuous(answer, f"{answer.bound:.4f}"),
        ),
        ("weights move without a user by at most", f"{answer.distances.max():.3g}"),
        ("  of which for the certificate's gap", f"{answer.from_gap:.3g}"),
        (f"uniform bound at {1 - rho:g}, all rows as one list", half_width),
    ]
    if held_out is not None:
        other_table = reading.table(held_out, table)
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
    console.answer(as_json, content, _show, "Risk of new users", rows)
    console.note(_assumed(model, answer.note))


def _assumed(model: Model, note: str) -> str:
    """What the bound on new users rests on."""
    fixed = [note] if note else []
    if model.levels:
        fixed.append("the levels of columns of text")
    if model.function.pairs:
        fixed.append("the pairs and their cells")
    if model.missing is not None:
        fixed.append("what stands in for missing values")
    as_fixed = f", taken as fixed: {', '.join(fixed)}" if fixed else ""
    return (
        "assumed: users are drawn independently; alpha, surrogate, depth, curves and pairs were "
        f"not chosen by these users{as_fixed}; weights of a new fit on one user less"
    )


def _show(
    title: str, rows: Sequence[Sequence[str]], columns: Sequence[str] = ("quantity", ">value")
) -> None:
    console.print_table(title, columns, rows)


def _unless_vacuous(result: Any, text: str) -> str:
    return "vacuous: says nothing" if result.vacuous else text


def _guaranteed(result: Any) -> str:
    return "yes" if result.guaranteed else f"no: {result.note}"


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


def _as_in_training(lists: RankingData, model: Model) -> InColumns[RankingData]:
    """Lists in the columns, and with the weights of users, of the problem that the model solves."""
    standardize: bool | str = "auto"
    if model.scale_rule is None:
        standardize = False
    elif model.scale_rule == ScaleRule.EACH:
        standardize = True
    surrogate = make_surrogate(model.surrogate, model.k, model.depth)
    setting = Setting(surrogate, model.user_weight, model.alpha, model.curves, model.stiffness)
    weighted = lists.weighted(model.user_weight)
    signs = None if model.monotonic_cst is None else np.array(model.monotonic_cst, dtype=float)
    columns = TrainingColumns(weighted, model.missing, standardize, signs, model.positive)
    return columns.of(setting, PairCuts.of(model.function, columns.plan.with_gaps))


def _result_of(model: Model, columns: InColumns[RankingData]) -> SolverResult:
    """The fit as its solver returned it, for the columns that it saw."""
    certificate = model.certificate
    bound = certificate["lower_bound"]
    return SolverResult(
        w=columns.weights(model.function),
        objective=certificate["objective"],
        lower_bound=-np.inf if bound is None else bound,
        status=Status(certificate["status"]),
        alpha=model.alpha,
    )
