"""``fit``: train a ranker on a file and write a model file."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from sklearn.exceptions import ConvergenceWarning

from structsvm_papk.cli import scale
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs, save_plot
from structsvm_papk.cli._shared.reading import GradedReading, Problem, say_columns
from structsvm_papk.data.columns.terms import Term
from structsvm_papk.data.roles import listed
from structsvm_papk.errors import AUTO, DegenerateOptimumWarning, InputError
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.files.model import Model, certificate_of, save_model
from structsvm_papk.files.tables import Table
from structsvm_papk.plots.terms import terms_figure
from structsvm_papk.rankers import PAPKRanker
from structsvm_papk.rankers.settings import (
    ALPHA,
    DEPTH,
    SURROGATE,
    as_depth,
)
from structsvm_papk.rankers.solver_choice import SOLVERS
from structsvm_papk.solvers.solver import SolverResult, Status
from structsvm_papk.surrogates.losses import SURROGATES

# what a warning advises to leave out, as an option
_WITHOUT = {"positive": "--positive", "monotonic_cst": "--monotonic"}
_MODEL = "a model file (Python's export_weights() and to_onnx() convert)"
_MOST_COLUMNS = 12  # that are shown


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is trained; the command has its fields as options."""

    surrogate: Annotated[
        str,
        options.problem_option(
            help=f"{', '.join(SURROGATES)}; or auto: avg, and of one list what its folds choose of "
            "avg and pauc."
        ),
    ] = SURROGATE
    curves: Annotated[
        Any,
        options.problem_option(
            parser=options.number_or_name,
            help="A piecewise linear curve for each column: auto, where folds of the lists decide; "
            "none, straight lines; or a number of pieces up to 254. Of svmlight, with "
            "--memory-budget or --dask auto is none.",
            metavar="NUMBER|auto|none",
        ),
    ] = AUTO
    monotonic: Annotated[
        list[str] | None,
        options.problem_option(
            help="The score must not fall (1) or not rise (-1) as this column rises; repeat for "
            "more. Columns of svmlight are called by their index.",
            metavar="NAME=1",
        ),
    ] = None
    pairs: options.Pairs = AUTO
    positive: options.Positive = False
    alpha: options.Alpha = ALPHA
    depth: options.Depth = DEPTH


@dataclass(frozen=True, kw_only=True)
class Solving:
    """Who solves the problem, and until when; the command has its fields as options."""

    solver: Annotated[str, options.solver_option(help=f"{', '.join(SOLVERS)}.")] = "auto"
    tol: options.Tol = 1e-6
    time_limit: Annotated[
        float | None,
        options.solver_option(
            help="Stop after this long, with the best weights so far.", metavar="SECONDS"
        ),
    ] = None
    threads: Annotated[int, options.solver_option(help="Threads for each pass over the data.")] = 1


def fit(
    *,
    data: options.Data,
    k: options.K,
    wanted: Wanted,
    reading: GradedReading,
    model_file: Annotated[
        Path,
        options.output_option(*options.MODEL_FLAGS, help="Write the model here.", metavar="FILE"),
    ],
    plot: options.Plot = None,
    as_json: options.Json = False,
    checkpoint: Annotated[
        Path | None,
        options.output_option(
            help="Keep what is done so far in this file, once a minute and at the end; the same "
            "command goes on from there.",
            metavar="FILE",
        ),
    ] = None,
    solving: Solving,
    where: scale.Loading,
) -> None:
    """Train a ranker and write a model file; --plot draws what each column adds to a score.

    Ctrl-C keeps the best model so far.
    Exit status 1 if the tolerance was not reached: the model is the best so far.
    """
    files = [(model_file, _MODEL), (checkpoint, "a checkpoint")]
    check_outputs([data], files, plot=plot)
    signs = _signs(wanted.monotonic or ())
    ranker = _ranker(k, wanted, solving, reading)
    ranker.checkpoint = None if checkpoint is None else Checkpoint(checkpoint)
    ranker.monotonic_cst = signs or None
    ranker.check_settings()
    with where.loaded(data, reading, ranker) as loaded:
        if signs:
            ranker.monotonic_cst = _signs_of_columns(signs, loaded.table)
        raised = _train(ranker, loaded)
        model = replace(
            ranker.to_model(),
            feature_names=loaded.table.feature_names,
            first_index=loaded.table.first_index,
        )
        save_model(model_file, model)
        names = _names(model)
        terms = [term.renamed(names) for term in ranker.terms_]
        save_plot(plot, lambda: terms_figure(terms, loaded.matrix, reading.missing))
        say_columns(loaded.table)
        console.note(str(ranker.exclusions_))
        gain = loaded.gain(ranker)
    _say(ranker.result_, raised)
    depth = as_depth(wanted.depth, reading.missing)
    problem = Problem(depth=depth, pieces=model.curves)
    content = _content(ranker, model, gain) | {
        **problem.content,
        "monotonic": signs,
        "positive": wanted.positive,
        "missing": reading.missing,
        "model": str(model_file),
    }
    words = problem.title(wanted.positive, reading.missing, k=model.k, alpha=model.alpha)
    title = f"{data.name}: {words}"
    console.answer(as_json, content, _show, title, model, ranker.result_, gain, terms)
    console.note(f"model written to {model_file}")
    if ranker.result_.status == Status.FAILED:
        console.warn(_how_to_go_on(checkpoint))
    if not (ranker.result_.converged or ranker.result_.status is Status.FINISHED):
        raise typer.Exit(1)


def _ranker(k: int, wanted: Wanted, solving: Solving, reading: GradedReading) -> PAPKRanker:
    """The ranker of the options; signs of columns need the data."""
    pairs = wanted.pairs
    if wanted.positive and pairs == AUTO:
        pairs = None
    return PAPKRanker(
        k=k,
        surrogate=wanted.surrogate,
        depth=as_depth(wanted.depth, reading.missing),
        alpha=wanted.alpha,
        solver=solving.solver,
        tol=solving.tol,
        time_limit=solving.time_limit,
        n_threads=solving.threads,
        relevance_threshold=reading.relevance_threshold,
        positive=wanted.positive,
        missing=reading.missing,
        curves=wanted.curves,
        pairs=pairs,
    )


def _train(ranker: PAPKRanker, loaded: scale.Loaded) -> list[warnings.WarningMessage]:
    """Train with a line that shows the progress; returns what was warned of."""
    with console.live() as watch, warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        ranker.callback = watch(ranker.solver, str(ranker.surrogate))
        loaded.train(ranker)
    return raised


def _say(result: SolverResult, raised: Sequence[warnings.WarningMessage]) -> None:
    """Say on standard error how a fit ended."""
    for warning in raised:
        if not issubclass(warning.category, ConvergenceWarning):
            console.warn(_said(warning.message))
    if result.status is Status.CONVERGED:
        for remark in result.notes:
            console.note(remark)
    elif result.status is Status.FINISHED:
        console.note(result.message)
    elif result.status is not Status.DEGENERATE:  # of that a warning has said what to do
        console.warn(result.message)


def _content(ranker: PAPKRanker, model: Model, gain: float) -> dict[str, Any]:
    """What was solved, and how far, for JSON."""
    result = ranker.result_
    return {
        "solver": model.solver,
        "surrogate": model.surrogate,
        "k": model.k,
        "alpha": model.alpha,
        **certificate_of(result),
        "message": result.message,
        "data_passes": result.data_passes,
        "seconds": result.seconds,
        "pap_at_k": {"train": gain},
        "n_users": int(ranker.exclusions_.n_used),
        "n_users_left_out": int(ranker.exclusions_.n_excluded),
    }


def _how_to_go_on(checkpoint: Path | None) -> str:
    """What to do after a fit whose data could not be reached any more."""
    if checkpoint is None:
        return "with --checkpoint FILE, the same command could go on from here"
    return f"the same command goes on from {checkpoint} once the data can be reached again"


def _signs(given: Sequence[str]) -> dict[str, int]:
    """The sign of each column that `--monotonic` names."""
    signs: dict[str, int] = {}
    for text in given:
        name, _, sign = text.rpartition("=")
        if not name or sign not in ("1", "-1"):
            raise InputError(f"--monotonic {text}: give NAME=1 (rising) or NAME=-1 (falling)")
        if name in signs:
            raise InputError(f"--monotonic names column {name!r} twice")
        signs[name] = int(sign)
    return signs


def _signs_of_columns(signs: dict[str, int], table: Table) -> list[int]:
    """The sign of each column of a table, 0 where none was given."""
    names = _names(table)
    for name in signs:
        if name not in names:
            raise InputError(
                f"--monotonic {name}: {table.source} has no such column; it has {listed(names)}"
            )
    return [signs.get(name, 0) for name in names]


def _names(columns: Model | Table) -> Sequence[str]:
    """Names of columns as in their file, or the numbers that it counts them with."""
    if columns.feature_names is not None:
        return columns.feature_names
    return [str(f + (columns.first_index or 0)) for f in range(columns.n_features)]


def _show(
    title: str, model: Model, result: SolverResult, gain: float, terms: Sequence[Term]
) -> None:
    """What was solved, how far, and the terms that move scores most."""
    numbers = {
        ">objective": f"{result.objective:.7f}",
        ">bound": console.known(result.lower_bound, ".7f"),
        ">gap": console.known(result.gap, ".0e"),
        ">passes": f"{result.data_passes:g}",
        ">s": f"{result.seconds:.2f}",
        ">train": console.known(gain, ".3f"),
    }
    row = [model.surrogate, model.solver.replace("_", " "), *numbers.values()]
    title = f"{title}; pAp@{model.k} on train"
    _print_plain(title, ["surrogate", "solver", *numbers], [row])
    if model.function.is_zero:
        return
    largest = sorted(terms, key=lambda term: -term.deviation)[:_MOST_COLUMNS]
    title = f"{len(largest)} of {len(terms)} columns" if len(largest) < len(terms) else ""
    columns = ["column", ">spread of the score", ">slope", ">lowest", ">highest", ">missing"]
    _print_plain(title, [*columns, "as it grows"], [_cells(term) for term in largest])


def _cells(term: Term) -> list[str]:
    """What a term adds to a score; of a straight line the file does not say where it ends."""
    ends = ["-", "-"]
    if term.heights.size:
        ends = [f"{term.heights.min():.4g}", f"{term.heights.max():.4g}"]
    slope = f"{term.mean_slope:.4g}" if term.mean_slope else "-"
    gap = f"{term.gap:.4g}" if term.gap else "-"
    return [escape(term.name), f"{term.deviation:.4g}", slope, *ends, gap, term.course]


def _print_plain(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console.print_table(title, columns, rows, box=None, padding=(0, 1, 0, 0))


def _said(warning: Any) -> str:
    """A warning in the words of the command line."""
    if not isinstance(warning, DegenerateOptimumWarning):
        return str(warning)
    advice = []
    for option, value in warning.settings.items():
        advice.append(f"--{option} {value}" if value else f"without {_WITHOUT[option]}")
    text = f"degenerate: {warning.what}"
    if advice:
        text += f"\ntry {' '.join(advice)}"
    return text
