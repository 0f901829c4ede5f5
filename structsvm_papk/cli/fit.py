"""``fit``: train a ranker on a file and write a model file."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from sklearn.exceptions import ConvergenceWarning

from structsvm_papk._types import Array
from structsvm_papk.cli import scale
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import OUTPUT, PROBLEM, SOLVER
from structsvm_papk.cli._shared.outputs import check_outputs, save_plot
from structsvm_papk.cli._shared.reading import Reading, Weighting, say_columns
from structsvm_papk.data.curves import Curve
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.files.model import Model, certificate_of, save_model
from structsvm_papk.plots.curves import curves_figure
from structsvm_papk.rankers import PAPKRanker
from structsvm_papk.rankers.settings import (
    ALPHA,
    DEPTH,
    SOLVERS,
    SURROGATE,
    SURROGATE_OF_LISTS,
    as_depth,
    make_solver,
)
from structsvm_papk.solvers.solver import SolverResult, Status
from structsvm_papk.surrogates.losses import SURROGATES

_MOST_WEIGHTS = 12  # that are shown


def fit(
    *,
    data: options.Data,
    k: options.K,
    surrogate: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(SURROGATES)}; or auto: avg, and of one list what its folds choose of "
            "avg and ts.",
            rich_help_panel=PROBLEM,
        ),
    ] = SURROGATE,
    alpha: options.Alpha = ALPHA,
    depth: options.Depth = DEPTH,
    user_weight: options.UserWeight = "equal",
    standardize: options.Standardize = "auto",
    positive: options.Positive = False,
    label: options.Label = "label",
    group: options.Group = None,
    ignore: options.Ignore = None,
    first_index: options.FirstIndex = None,
    relevance_threshold: options.RelevanceThreshold = None,
    one_list: options.OneList = False,
    missing: options.Missing = None,
    label_gain: options.LabelGain = "linear",
    policy: options.Policy = "cap",
    solver: Annotated[
        str, typer.Option(help=f"{', '.join(SOLVERS)}.", rich_help_panel=SOLVER)
    ] = "auto",
    qp_solver: options.QpSolver = None,
    tol: options.Tol = 1e-6,
    max_iter: options.MaxIter = None,
    time_limit: options.TimeLimit = None,
    threads: options.Threads = 1,
    memory_budget: scale.MemoryBudget = None,
    scratch: scale.Scratch = None,
    dask: scale.Dask = None,
    partitions: scale.Partitions = None,
    model_file: Annotated[
        Path,
        typer.Option(
            *options.MODEL_FLAGS,
            help="Write the model here.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ],
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep what is done so far in this file; the same command goes on from there.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    checkpoint_interval: Annotated[
        float,
        typer.Option(
            help="How often the result so far is written.",
            metavar="SECONDS",
            rich_help_panel=OUTPUT,
        ),
    ] = 60.0,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Train a ranker and write a model file; --plot draws what each column adds to a score.

    Ctrl-C keeps the best model so far.
    """
    kept = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_interval)
    check_outputs([data], [model_file, checkpoint], plot=plot)
    reading = Reading(
        label=label,
        group=group,
        ignore=ignore,
        first_index=first_index,
        relevance_threshold=relevance_threshold,
        one_list=one_list,
        missing=missing,
        label_gain=label_gain,
    )
    weighting = Weighting(
        depth=as_depth(depth, missing),
        user_weight=user_weight,
        standardize=standardize,
    )
    where = scale.Loading(
        memory_budget=memory_budget, scratch=scratch, dask=dask, partitions=partitions
    )
    chosen: Any = solver
    if qp_solver is not None:
        if not isinstance(alpha, float):
            raise InputError("--qp-solver needs the --alpha that is minimised with, as a number")
        chosen = make_solver(
            "cutting_plane" if solver == "auto" else solver,
            weighting.surrogate(SURROGATE_OF_LISTS if surrogate == SURROGATE else surrogate, k),
            alpha,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            positive=positive,
            qp_solver=qp_solver,
        )
    ranker = PAPKRanker(
        k=k,
        surrogate=surrogate,
        depth=weighting.depth,
        user_weight=user_weight,
        alpha=alpha,
        solver=chosen,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        policy=policy,
        n_threads=threads,
        relevance_threshold=relevance_threshold,
        checkpoint=kept,
        standardize=standardize,
        positive=positive,
        missing=missing,
    )
    ranker.check_settings()
    with where.loaded(data, reading, ranker) as loaded:
        with console.live() as watch, warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            ranker.callback = watch(solver, surrogate)
            loaded.train(ranker)
        model = replace(
            ranker.to_model(),
            feature_names=loaded.table.feature_names,
            first_index=loaded.table.first_index,
        )
        save_model(model_file, model)
        save_plot(plot, lambda: curves_figure(_named_curves(ranker, model), loaded.matrix))
        say_columns(loaded.table)
        console.note(str(ranker.exclusions_))
        gain = loaded.gain(ranker)
    result = ranker.result_
    for warning in raised:
        if not issubclass(warning.category, ConvergenceWarning):
            console.warn(_said(warning.message))
    if result.status in (Status.CONVERGED, Status.FINISHED):
        for remark in result.notes:
            console.note(remark)
    elif result.status is not Status.DEGENERATE:  # of that a warning has said what to do
        console.warn(result.message)
    content = {
        "solver": model.solver,
        "surrogate": model.surrogate,
        "k": model.k,
        "alpha": model.alpha,
        **certificate_of(result),
        "message": result.message,
        "data_passes": result.data_passes,
        "seconds": result.seconds,
        "pap_at_k": {"train": gain},
        "settings": {},
        "n_users": int(ranker.exclusions_.n_used),
        "n_users_left_out": int(ranker.exclusions_.n_excluded),
        **weighting.content,
        "positive": positive,
        "missing": missing,
        "model": str(model_file),
    }
    title = f"{data.name}: {weighting.title(k=model.k, alpha=model.alpha)}"
    title += ", weights >= 0" if positive else ""
    title += ", missing lowest" if missing else ""
    console.answer(as_json, content, _show, title, model, result, gain, ranker.scale_)
    console.note(f"model written to {model_file}")
    if result.status == Status.FAILED:
        advice = "with --checkpoint FILE, the same command could go on from here"
        if checkpoint is not None:
            advice = (
                f"the same command goes on from {checkpoint} once the data can be reached again"
            )
        console.warn(advice)
    if not result.converged:
        raise typer.Exit(1)


def _named_curves(ranker: PAPKRanker, model: Model) -> list[Curve]:
    """The curves, by the names of the file, or by the numbers that it counts columns with."""
    if model.feature_names is not None:
        return ranker.curves_
    first = model.first_index or 0
    return [replace(curve, name=str(f + first)) for f, curve in enumerate(ranker.curves_)]


def _show(title: str, model: Model, result: SolverResult, gain: float, scale: Array | None) -> None:
    """What was solved, how far, and by which weights."""
    numbers = {
        ">objective": f"{result.objective:.7f}",
        ">bound": console.known(result.lower_bound, ".7f"),
        ">gap": console.known(result.gap, ".0e"),
        ">passes": f"{result.data_passes:g}",
        ">s": f"{result.seconds:.2f}",
        ">train": console.known(gain, ".3f"),
    }
    row = [model.surrogate, model.solver.replace("_", " "), *numbers.values()]
    console.print_table(
        f"{title}; pAp@{model.k} on train",
        ["surrogate", "solver", *numbers],
        [row],
        box=None,
        padding=(0, 1, 0, 0),
    )
    if model.coef.any():
        _print_weights(model, scale)


def _print_weights(model: Model, scale: Array | None) -> None:
    """The weights that move scores most, each by one deviation of its column where it has one."""
    effect = model.coef if scale is None else model.coef * scale
    numbers = {">weight": model.coef}
    if scale is not None:
        numbers[">per deviation"] = effect
    if model.missing_coef is not None and model.missing_coef.any():
        numbers[">where it is missing"] = model.missing_coef
    largest = np.argsort(-np.abs(effect), kind="stable")[:_MOST_WEIGHTS]
    rows = []
    for f in largest:
        name = str(f + (model.first_index or 0))  # as a file that names no features counts them
        if model.feature_names is not None:
            name = escape(model.feature_names[f])
        rows.append([name, *(f"{values[f]:.4g}" for values in numbers.values())])
    title = f"{len(rows)} of {model.n_features} weights" if len(rows) < model.n_features else ""
    console.print_table(title, ["feature", *numbers], rows, box=None, padding=(0, 1, 0, 0))


def _said(warning: Any) -> str:
    """A warning in the words of the command line."""
    if not isinstance(warning, DegenerateOptimumWarning):
        return str(warning)
    advice = []
    for option, value in warning.settings.items():
        advice.append("without --positive" if option == "positive" else f"--{option} {value}")
    text = f"degenerate: {warning.what}"
    if advice:
        text += f"\ntry {' '.join(advice)}"
    return text
