"""``reproduce table3``: recommender data."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.experiments import movielens
from structsvm_papk.experiments import table3 as experiment


@dataclass(frozen=True)
class Grid:
    """Settings to choose from by validation."""

    eta: Annotated[
        list[float] | None, typer.Option(help="Step sizes of the grid; by default the paper's.")
    ] = None
    alpha: Annotated[
        list[float] | None, typer.Option(help="Regularisations of the grid; same default.")
    ] = None
    ridge: Annotated[list[float] | None, typer.Option(help="Regularisations of logistic fits.")] = (
        None
    )
    steps: Annotated[int, typer.Option(help="Steps of descent.")] = 201

    def of_study(self):
        """The grid, where nothing is given the paper's."""
        given = {"etas": self.eta, "alphas": self.alpha, "ridges": self.ridge}
        return experiment.Grid(
            steps=self.steps, **{name: tuple(values) for name, values in given.items() if values}
        )


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
):
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
        console.note(
            f"{folder} is not MovieLens 100K (other numbers of ratings, users or items): the "
            "published values are for other data",
            style="yellow",
        )
        dataset += ", not MovieLens 100K"
    if as_json:
        console.print_json(result)
        return
    for number in plan.ks:
        _print([row for row in result["rows"] if row["k"] == number], dataset, number)


def _watch(update):
    def watch(done, total, cell):
        label = "fits" if cell is None else f"{cell.method}, k = {cell.k}"
        update(completed=done, total=total, description=label)

    return watch


def _print(rows, dataset, k):
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


def _ends(statuses, zero):
    """How the fits of all seeds ended, in few words."""
    words = list(dict.fromkeys(statuses))
    if any(zero):
        words.append("w = 0" if all(zero) else f"w = 0 in {sum(zero)} of {len(zero)}")
    return ", ".join(words)
