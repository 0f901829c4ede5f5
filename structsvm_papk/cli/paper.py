"""``reproduce table1|table2|figure1|table3``: the paper's tables and figure, recomputed."""

import math
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from structsvm_papk.cli import console, options
from structsvm_papk.errors import InputError
from structsvm_papk.plots.convergence import check_plot, save_figure


def register(app):
    """Add the commands."""
    for command in (table1, table2, figure1, table3):
        app.command()(command)
    app.command(name="synthetic-movielens")(synthetic_movielens)


def table1(as_json: options.Json = False):
    """The metrics of Table 1 on its five rankings, beside the published values."""
    from structsvm_papk.experiments import table1 as experiment

    found = experiment.run()
    if as_json:
        console.print_json(found)
        return
    table = Table(title="Table 1", title_justify="left")
    for name in ("ranker", "labels", "metric", "published", "measured", "difference"):
        table.add_column(name, justify="left" if name in ("ranker", "labels") else "right")
    for row in found["rows"]:
        measured, difference = f"{row['measured']:.6f}", f"{row['difference']:.0e}"
        cells = (row["ranker"], row["labels"], row["metric"], row["published_as"])
        table.add_row(*cells, measured, difference)
    console.print_table(table)
    print(f"largest absolute difference: {found['max_abs_difference']:.1e}")


def table2(
    runs: Annotated[int, typer.Option(help="Simulated lists of each case.")] = 300,
    case: Annotated[
        list[int] | None, typer.Option(help="Only this case, 1 or 2; repeat for both.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first list.")] = 0,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
):
    """GD-Avg against SGD@k-avg (case 1) and SVM-pAUC (case 2); then certified minimisers.

    The paper does not state the settings of its gradient descent here, so several are run.
    """
    from structsvm_papk.experiments import table2 as experiment

    cases, cells = tuple(case or experiment.CASES), options.cells(checkpoint, "table2")
    with working("descending") as say:
        found = experiment.run(
            runs, cases=cases, seed=seed, callback=lambda row: say(row["how"]), cells=cells
        )
    if as_json:
        console.print_json(found)
        return
    for number in cases:
        rows = [row for row in found["rows"] if row["case"] == number]
        console.print_table(_comparison(rows, runs))


def _comparison(rows, runs):
    methods, k = f"GD-Avg | {rows[0]['methods'][1]}", rows[0]["k"]
    title = f"Table 2, case {rows[0]['case']}: {methods}, k = {k}, {runs} runs"
    table = Table(title=title, title_justify="left")
    table.add_column("how", no_wrap=True)
    heads = ("precision@k", "higher", "equal", "AUC@k where equal", "higher", "w = 0")
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("published, of 300 runs", *_cells(rows[0]["published"]), end_section=True)
    for row in rows:
        table.add_row(row["how"], *_cells(row["measured"]))
    return table


def _cells(values):
    def both(pairs):
        return " | ".join("-" if m is None else f"{m:.2f}±{s:.2f}" for m, s in pairs)

    def counts(pair):
        return "" if pair is None else " | ".join(map(str, pair))

    return (
        both(values["precision"]),
        counts(values["precision_higher"]),
        str(values["n_equal"]),
        both(values["auc_where_equal"]),
        counts(values["auc_higher"]),
        counts(values.get("zero")),
    )


@contextmanager
def working(title):
    """Yield ``say(text)``, one live line on standard error; silent where that is no terminal."""
    screen = console.notes()
    if not screen.is_terminal:
        yield lambda text: None
        return
    with screen.status(title) as status:
        yield status.update


def figure1(
    condition: Annotated[
        list[str] | None,
        typer.Option(help="Only strong, beta, moderate or weak; repeat for more."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the lists and of the start.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the figure (.png, .svg or .pdf).")
    ] = None,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
):
    """Surrogates under margin conditions: the authors' descent, and certified minimisers beside it.

    Includes the weak condition, where Ramp is minimised by the convex-concave procedure.
    """
    from structsvm_papk.experiments import figure1 as experiment

    options.check_outputs(plot)
    if plot is not None:
        check_plot(plot)
    conditions = tuple(condition or experiment.SETTINGS)
    cells = options.cells(checkpoint, "figure1")
    with working("minimising") as say:
        panels = experiment.run(conditions, seed, lambda p: say(f"{p.condition} {p.solver}"), cells)
    if plot is not None:
        save_figure(experiment.plot(panels), plot)
    if as_json:
        console.print_json({"figure": "figure1", "panels": [p.as_dict() for p in panels]})
        return
    console.print_table(_final_values(panels))


def _final_values(panels):
    table = Table(title="Figure 1: values where the runs end", title_justify="left")
    for name in ("condition", "minimised", "solver"):
        table.add_column(name, no_wrap=True)
    for name in (*panels[0].curves, "gap"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("tends to zero in the paper")
    for panel in panels:
        last = panel.as_dict()
        values = (f"{value:.4f}" for value in last["measured"].values())
        gap = f"{last['gap']:.1e}" if math.isfinite(last["gap"]) else "-"
        zero = last["published"]["tends_to_zero"]
        shown = "not drawn" if zero is None else ", ".join(zero)
        cells = (panel.condition, panel.optimised, panel.solver)
        table.add_row(*cells, *values, gap, shown)
    return table


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
    eta: Annotated[
        list[float] | None, typer.Option(help="Step sizes of the grid; by default the paper's.")
    ] = None,
    alpha: Annotated[
        list[float] | None, typer.Option(help="Regularisations of the grid; same default.")
    ] = None,
    ridge: Annotated[
        list[float] | None, typer.Option(help="Regularisations of logistic fits.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of descent.")] = 201,
    jobs: Annotated[int, typer.Option(help="Processes; 0: one for each core.")] = 0,
    as_json: options.Json = False,
):
    """Mean pAp@k on held-out items, all methods, settings chosen by validation."""
    from structsvm_papk.experiments import movielens
    from structsvm_papk.experiments import table3 as experiment

    given = {"etas": eta, "alphas": alpha, "ridges": ridge}
    grid = experiment.Grid(steps=steps, **{n: tuple(v) for n, v in given.items() if v})
    seeds = tuple(seed or experiment.SEEDS)
    plan = experiment.Plan(str(folder), dataset, tuple(k or ()), seeds, tuple(method or ()), grid)
    if dataset == "movielens":
        console.note(movielens.LICENCE)
    try:
        with _progress() as watch:
            found = experiment.run(plan, results, jobs or os.cpu_count() or 1, watch)
    except KeyboardInterrupt:
        console.note(f"finished fits are kept in {results}; the same command goes on from there")
        raise
    if found["published_data"] is False:
        console.note(
            f"{folder} is not MovieLens 100K (other numbers of ratings, users or items): the "
            "published values are for other data",
            style="yellow",
        )
    if as_json:
        console.print_json(found)
    else:
        for number in plan.ks:
            rows = [row for row in found["rows"] if row["k"] == number]
            other = ", not MovieLens 100K" if found["published_data"] is False else ""
            console.print_table(_gains_table(rows, dataset + other, number))


def synthetic_movielens(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.")],
    users: Annotated[int, typer.Option(help="Number of users.")] = 100,
    items: Annotated[int, typer.Option(help="Number of items.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
):
    """Write invented ratings shaped like ml-100k, to try table3 without the real data."""
    from structsvm_papk.experiments import movielens

    if users < 1 or items < 50:
        raise InputError("the folder needs at least 1 user and 50 items")
    print(movielens.write_synthetic(folder, users, items, seed=seed))


@contextmanager
def _progress():
    """A bar of the fits on standard error; silent where that is no terminal."""
    screen = console.notes()
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("fits", total=None)

        def watch(done, total, cell):
            label = "fits" if cell is None else f"{cell.method}, k = {cell.k}"
            bar.update(task, completed=done, total=total, description=label)

        yield watch


def _gains_table(rows, dataset, k):
    title = f"Table 3, {dataset}, k = {k}: mean pAp@{k} gain on the test lists, in %"
    table = Table(title=title, title_justify="left")
    table.add_column("method", no_wrap=True)
    for name in ("published", "measured", "95% over users", "validation"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status")
    for row in rows:
        published = "-" if row["published"] is None else f"{row['published']:.1f}"
        table.add_row(
            row["method"],
            published,
            f"{row['measured']:.1f}",
            f"{row['lower']:.1f} to {row['upper']:.1f}",
            f"{row['validation']:.1f}",
            _ends(row["statuses"], row["zero"]),
        )
    return table


def _ends(statuses, zero):
    """How the fits of all seeds ended, in few words."""
    words = list(dict.fromkeys(statuses))
    if any(zero):
        words.append("w = 0" if all(zero) else f"w = 0 in {sum(zero)} of {len(zero)}")
    return ", ".join(words)
