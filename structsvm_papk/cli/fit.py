"""``fit``: train a ranker on a file and write a model file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli import scale
from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.cli._shared.options import OUTPUT, PROBLEM, SOLVER, option
from structsvm_papk.cli._shared.runs import explain, print_runs
from structsvm_papk.diagnosis import critical_depth
from structsvm_papk.files.model import Model, certificate_of, save_model
from structsvm_papk.oracles import EmpiricalRisk
from structsvm_papk.rankers.settings import ALPHA, DEPTH, SURROGATE, solver_name
from structsvm_papk.rankers.solver_race import solve
from structsvm_papk.solvers.result import Status


@dataclass(frozen=True)
class Problem:
    """What is minimised."""

    k: int = PROBLEM(..., options.SHOWN, flags="--k")
    surrogate: str = PROBLEM(SURROGATE, "avg, max, ts, pauc, ts_alg2, ramp or clipped_ramp.")
    alpha: float = PROBLEM(ALPHA, options.ALPHA)


@dataclass(frozen=True)
class Weighting(options.Weighting):
    """What counts in training; by default as in `PAPKRanker`."""

    depth: str = PROBLEM(DEPTH, options.DEPTH, "DEPTH")


@dataclass(frozen=True)
class Solver:
    """What minimises it."""

    solver: str = SOLVER("auto", "auto, cutting_plane, cccp or subgradient.")
    eta: float | None = SOLVER(None, "Step size of subgradient descent.")


def fit(
    data: options.DataFile,
    problem: Problem,
    weighting: Weighting,
    reading: options.Reading,
    solver: Solver,
    stopping: options.Stopping,
    output: Annotated[
        Path, option(OUTPUT, "Model file to write.", "--output", "-o", metavar="FILE")
    ],
    saving: options.Saving,
    where: scale.Scale,
    policy: options.Policy = "exclude",
    as_json: options.Json = False,
) -> None:
    """Train a ranker and write a model file.

    Ctrl-C keeps the best model so far.
    """
    loss = weighting.surrogate(problem.surrogate, problem.k)
    name = solver_name(solver.solver, loss)
    options.check_outputs(output)
    settings = stopping.limits() | ({} if solver.eta is None else {"eta": solver.eta})
    folder = saving.checkpoint
    job = scale.Job(data, reading, loss, weighting, policy, stopping.threads, folder)
    with where.risk(job) as loaded:
        checkpoint = saving.open("fit", loaded.lists)
        loaded.remember(folder)
        with progress.live() as watch:
            callback = watch(name, problem.surrogate)
            run = solve(name, loaded.risk, problem.alpha, None, callback, checkpoint, **settings)
        save_model(output, _model(run, loaded, weighting.user_weight, reading.relevance_threshold))
        options.say_columns(loaded.table)
        console.note(str(run.exclusions))
        _explain(run, loaded.risk)
    content = run.as_dict() | {"model": str(output)}
    console.answer(as_json, content, print_runs, [run], f"alpha = {run.alpha:g}")
    console.note(f"model written to {output}")
    if run.result.status == Status.FAILED:
        console.warn(_how_to_go_on(saving.checkpoint))
    if not run.result.converged:
        raise typer.Exit(1)


def _model(run: Any, loaded: scale.Loaded, user_weight: str, threshold: float | None) -> Model:
    return Model(
        coef=run.result.w,
        k=run.k,
        surrogate=run.surrogate,
        alpha=run.alpha,
        solver=run.solver,
        certificate=certificate_of(run.result),
        feature_names=loaded.table.feature_names,
        first_index=loaded.table.first_index,
        relevance_threshold=threshold,
        depth=loaded.risk.surrogate.depth,
        user_weight=user_weight,
    )


def _explain(run: Any, risk: Any) -> None:
    """Say what the status means; of a zero optimum in one line, with the option that repairs it."""
    if run.result.w.any() or not run.result.converged:
        explain(run)
        return
    advice = "count more negatives with --depth 0.9, or let tune choose"
    if isinstance(risk, EmpiricalRisk):
        answer = critical_depth(risk)
        depth, now = answer.informative_from, risk.surrogate.depth or risk.surrogate.k
        if depth is None:
            advice = f"no depth repairs it (all {answer.deepest} negatives): try clipped_ramp"
        elif depth <= now:
            advice = "not exactly, and a smaller --alpha or --tol may find more"
        else:
            advice = f"critical depth {depth} of {answer.deepest}: give --depth {depth} or more"
    console.warn(
        f"degenerate: w = 0 is the optimum of {run.surrogate} here, and ranks nothing; {advice}"
    )


def _how_to_go_on(folder: Path | None) -> str:
    if folder is None:
        return "with --checkpoint DIR, the same command could go on from here"
    return f"the same command goes on from {folder} once the data can be reached again"
