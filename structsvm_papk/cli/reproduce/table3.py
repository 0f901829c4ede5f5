"""``reproduce table3``: recommender data."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.cli._shared.grouped import Panel
from structsvm_papk.experiments import movielens
from structsvm_papk.experiments import table3 as experiment

_GRID = Panel("Grid")


@dataclass(frozen=True)
class Grid:
    """Settings to choose from by validation."""

    eta: list[float] | None = _GRID(None, "Step sizes; by default the paper's.")
    alpha: list[float] | None = _GRID(None, "Regularisations; same default.")
    ridge: list[float] | None = _GRID(None, "Regularisations of logistic fits.")
    steps: int = _GRID(201, "Steps of descent.")

    def of_study(self) -> experiment.Grid:
        """The grid, where nothing is given the paper's."""
        given = {"etas": self.eta, "alphas": self.alpha, "ridges": self.ridge}
        chosen: dict[str, Any] = {name: tuple(v) for name, v in given.items() if v}
        return experiment.Grid(steps=self.steps, **chosen)


def table3(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Unpacked ml-100k, or a folder of train_data_d*.tsv, val_.. and test_.. files."
        ),
    ],
    results: Annotated[
        Path,
        typer.Option(help="Folder of the fits; an interrupted run goes on from it."),
    ],
    grid: Grid,
    dataset: Annotated[
        str,
        typer.Option(help="movielens (ml-100k), citation or behance (prepared .tsv files)."),
    ] = "movielens",
    k: Annotated[
        list[int] | None, typer.Option("--k", help="Only this k; repeat for more.")
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Seed of preparation and starts; repeat for more. Default: 0, 1 and 2."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method, as the table names it; repeat.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; 0: one for each core.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Mean pAp@k on held-out items of recommender data, all methods.

    Settings are chosen by validation.
    """
    seeds, choice = tuple(seed or experiment.SEEDS), grid.of_study()
    plan = experiment.Plan(str(folder), dataset, tuple(k or ()), seeds, tuple(method or ()), choice)
    if dataset == "movielens":
        console.note(movielens.LICENCE)
    try:
        with progress.bar("fits") as update:
            result = experiment.run(plan, results, jobs or os.cpu_count() or 1, _watch(update))
    except KeyboardInterrupt:
        console.note(f"finished fits are kept in {results}; the same command goes on from there")
        raise
    if result["published_data"] is False:
        console.warn(
            f"{folder} is not MovieLens 100K (other numbers of ratings, users or items): the "
            "published values are for other data"
        )
        dataset += ", not MovieLens 100K"
    console.answer(as_json, result, _show, result["rows"], dataset, plan.ks)


def _watch(update: Callable[..., None]) -> Callable[..., None]:
    def watch(done: int, total: int, cell: Any) -> None:
        label = "fits" if cell is None else f"{cell.method}, k = {cell.k}"
        update(completed=done, total=total, description=label)

    return watch


def _show(rows: Sequence[dict[str, Any]], dataset: str, ks: Sequence[int]) -> None:
    for k in ks:
        _show_k([row for row in rows if row["k"] == k], dataset, k)


def _show_k(rows: Sequence[dict[str, Any]], dataset: str, k: int) -> None:
    lines = [
        (
            row["method"],
            "-" if row["published"] is None else f"{row['published']:.1f}",
            f"{row['measured']:.1f}",
            f"{row['lower']:.1f} to {row['upper']:.1f}",
            f"{row['validation']:.1f}",
            _ends(row["statuses"], row["zero"]),
        )
        for row in rows
    ]
    title = f"Table 3, {dataset}, k = {k}: mean pAp@{k} gain on the test lists, in %"
    columns = ("method", ">published", ">measured", ">95% over users", ">validation", "status")
    console.print_table(title, columns, lines)


def _ends(statuses: Sequence[str], zero: Sequence[bool]) -> str:
    """How the fits of all seeds ended, in few words."""
    words = list(dict.fromkeys(statuses))
    if any(zero):
        words.append("w = 0" if all(zero) else f"w = 0 in {sum(zero)} of {len(zero)}")
    return ", ".join(words)
