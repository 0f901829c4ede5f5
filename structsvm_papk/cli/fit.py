"""``fit``: train a ranker on a file and write a model file."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.markup import escape
from sklearn.exceptions import ConvergenceWarning

from structsvm_papk._types import Array
from structsvm_papk.cli import compare, scale
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import PROBLEM, SOLVER, WRITTEN
from structsvm_papk.errors import DegenerateOptimumWarning
from structsvm_papk.files.model import Model, save_model
from structsvm_papk.rankers import PAPKRanker
from structsvm_papk.rankers.settings import ALPHA, SOLVERS, SURROGATE
from structsvm_papk.rankers.solver_race import Run
from structsvm_papk.solvers.result import Status
from structsvm_papk.surrogates import SURROGATES

_MOST_WEIGHTS = 12  # that are shown


def fit(
    *,
    data: Path = options.DATA,
    k: int = options.K,
    surrogate: str = PROBLEM(SURROGATE, f"{', '.join(SURROGATES)}."),
    alpha: str = PROBLEM(ALPHA, options.ALPHA, "NUMBER|auto"),
    weighting: options.Weighting,
    reading: options.TrainingRows,
    solver: str = SOLVER("auto", f"{', '.join(SOLVERS)}."),
    stopping: options.Stopping,
    model_file: Path = WRITTEN(..., "Write the model here.", "FILE", flags=options.MODEL_FLAGS),
    saving: options.Saving,
    where: scale.Scale,
    policy: str = options.policy("cap"),
    positive: bool = options.POSITIVE,
    as_json: bool = options.JSON,
) -> None:
    """Train a ranker and write a model file.

    Ctrl-C keeps the best model so far.
    """
    weighting = weighting.suited_to(reading.missing)
    ranker = PAPKRanker(
        k=k,
        surrogate=surrogate,
        depth=weighting.negatives,
        user_weight=weighting.user_weight,
        alpha=options.parse_alpha(alpha),
        solver=solver,
        **stopping.limits(),
        policy=policy,
        n_threads=stopping.threads,
        relevance_threshold=reading.relevance_threshold,
        checkpoint=saving.checkpoint,
        standardize=weighting.units,
        user_scaling=weighting.scaling,
        positive=positive,
        missing=reading.missing,
    )
    ranker.check_settings()
    with where.loaded(data, reading, ranker) as loaded:
        ranker.checkpoint = saving.place()
        with console.live() as watch, warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            ranker.callback = watch(solver, surrogate)
            loaded.train(ranker)
        model = replace(
            ranker.to_model(), feature_names=loaded.table.feature_names,
            first_index=loaded.table.first_index,
        )  # fmt: skip
        save_model(model_file, model)
        options.say_columns(loaded.table)
        console.note(str(ranker.exclusions_))
        gains = {"train": loaded.gain(ranker)}
    run = Run(
        solver=model.solver,
        surrogate=model.surrogate,
        k=model.k,
        alpha=model.alpha,
        result=ranker.result_,
        exclusions=ranker.exclusions_,
        settings={},
        pap_at_k=gains,
    )
    for warning in raised:
        if not issubclass(warning.category, ConvergenceWarning):
            console.warn(_said(warning.message))
    if run.result.status is not Status.DEGENERATE:
        compare.explain(run)
    content = run.as_dict() | weighting.content
    content |= {"positive": positive, "missing": reading.missing, "model": str(model_file)}
    title = weighting.title(k=model.k, alpha=model.alpha)
    title += ", weights >= 0" if positive else ""
    title += ", missing lowest" if reading.missing else ""
    console.answer(as_json, content, compare.print_runs, [run], f"{data.name}: {title}")
    if not as_json and model.coef.any():
        _print_weights(model, ranker.scale_)
    console.note(f"model written to {model_file}")
    if run.result.status == Status.FAILED:
        advice = "with --checkpoint FILE, the same command could go on from here"
        if saving.checkpoint is not None:
            advice = (
                f"the same command goes on from {saving.checkpoint} once the data can be reached "
                "again"
            )
        console.warn(advice)
    if not run.result.converged:
        raise typer.Exit(1)


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
        text += f"\ntry {' '.join(advice)}, or tune"
    return text
