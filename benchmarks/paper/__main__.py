"""The commands of `benchmarks.paper`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common import console

app = console.app_of("Tables and figure of the paper, beside the published values.")
Numbers = list[float] | None


@app.command()
def table1(as_json: console.Json = False):
    """The metrics of Table 1 on its five rankings."""
    from benchmarks.paper.table1 import run

    result = run()
    console.answer(as_json, result, _show_table1, result)


def _show_table1(result):
    console.print_rows("Table 1", result["rows"])
    print(f"largest absolute difference: {result['max_abs_difference']:.1e}")


@app.command()
def table2(
    runs: Annotated[int, typer.Option(help="Simulated lists of each case.")] = 300,
    case: Annotated[list[int] | None, typer.Option(help="Only this one, 1 or 2.")] = None,
    seed: console.Seed = 0,
    checkpoint: console.Folder = None,
    as_json: console.Json = False,
):
    """GD-Avg against SGD@k-avg (case 1) and SVM-pAUC (case 2) on simulated lists.

    The paper does not state the settings of its gradient descent here, so several are run; then
    come certified minimisers.
    """
    from benchmarks.paper.table2 import CASES, run

    cases = tuple(case or CASES)
    with console.progress() as step:
        result = run(
            runs, cases=cases, seed=seed, callback=lambda row: step(row["how"]),
            cells=console.cells(checkpoint, "table2"),
        )  # fmt: skip
    console.answer(as_json, result, _show_table2, result["rows"], cases, runs)


def _show_table2(rows, cases, runs):
    for case in cases:
        own = [row for row in rows if row["case"] == case]
        k, other = own[0]["k"], own[0]["methods"][1]
        lines = [{"how": "published, of 300 runs"} | _pairs(own[0]["published"])]
        lines += [{"how": row["how"]} | _pairs(row["measured"]) for row in own]
        title = f"Table 2, case {case}: GD-Avg | {other}, k = {k}, {runs} runs"
        console.print_rows(title, lines)


def _pairs(values):
    def both(pairs):
        return " | ".join("-" if m is None else f"{m:.2f}±{s:.2f}" for m, s in pairs)

    def counts(pair):
        return "" if pair is None else " | ".join(map(str, pair))

    return {
        "precision@k": both(values["precision"]),
        "precision higher": counts(values["precision_higher"]),
        "equal": values["n_equal"],
        "AUC@k where equal": both(values["auc_where_equal"]),
        "AUC higher": counts(values["auc_higher"]),
        "w = 0": counts(values.get("zero")),
    }


@app.command()
def figure1(
    condition: Annotated[
        list[str] | None, typer.Option(help="Only strong, beta, moderate or weak; repeat.")
    ] = None,
    seed: console.Seed = 0,
    plot: console.Plot = None,
    as_json: console.Json = False,
):
    """Surrogates under margin conditions: the authors' descent, and certified minimisers.

    Includes the weak condition, where Ramp is minimised by the convex-concave procedure.
    """
    from benchmarks.paper import figure1 as study

    conditions = tuple(condition or study.SETTINGS)
    with console.progress(2 * len(conditions)) as step:
        panels = study.run(conditions, seed, lambda panel: step(panel.condition))
    console.save_plot(plot, lambda: study.plot(panels))
    content = {"figure": "figure1", "panels": [panel.as_dict() for panel in panels]}
    console.answer(as_json, content, _show_figure1, panels)


def _show_figure1(panels):
    rows = []
    for panel in panels:
        what = {name: getattr(panel, name) for name in ("condition", "optimised", "solver")}
        last = panel.as_dict()
        in_the_paper = {"tends to zero in the paper": last["published"]["tends_to_zero"]}
        rows.append(what | last["measured"] | {"gap": last["gap"]} | in_the_paper)
    console.print_rows("Figure 1: values where the runs end", rows)


@app.command()
def table3(
    folder: Annotated[
        Path, typer.Argument(help="Unpacked ml-100k, or a folder of train_data_d*.tsv, val_, test_")
    ],
    results: Annotated[Path, typer.Option(help="Folder of the fits; a new run goes on from it.")],
    dataset: Annotated[
        str, typer.Option(help="movielens (ml-100k), citation or behance (prepared .tsv files).")
    ] = "movielens",
    k: Annotated[list[int] | None, typer.Option("--k", help="Only this k; repeat.")] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Seed of preparation and starts; repeat. By default 0, 1 and 2."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method, as the table names it; repeat.")
    ] = None,
    eta: Annotated[Numbers, typer.Option(help="Step sizes of the grid.")] = None,
    alpha: Annotated[Numbers, typer.Option(help="Regularisations of the grid.")] = None,
    ridge: Annotated[Numbers, typer.Option(help="Regularisations of logistic fits.")] = None,
    steps: Annotated[int, typer.Option(help="Steps of descent.")] = 201,
    jobs: Annotated[int, typer.Option(help="Processes; 0: one for each core.")] = 0,
    as_json: console.Json = False,
):
    """Mean pAp@k on held-out items of recommender data, all methods; settings by validation."""
    from benchmarks.paper import movielens
    from benchmarks.paper import table3 as study

    given = {"etas": eta, "alphas": alpha, "ridges": ridge}
    grid = study.Grid(steps=steps, **{name: tuple(v) for name, v in given.items() if v})
    seeds = tuple(seed or study.SEEDS)
    plan = study.Plan(str(folder), dataset, tuple(k or ()), seeds, tuple(method or ()), grid)
    if dataset == "movielens":
        console.note(movielens.LICENCE)
    with console.progress() as step:
        result = study.run(
            plan, results, jobs or os.cpu_count() or 1,
            lambda done, total, cell: step(cell.method if cell else "fits", done, total),
        )  # fmt: skip
    if result["published_data"] is False:
        console.note(
            f"{folder} is not MovieLens 100K (other numbers of ratings, users or items): the "
            "published values are for other data",
            "yellow",
        )
        dataset += ", not MovieLens 100K"
    console.answer(as_json, result, _show_table3, result["rows"], dataset)


def _show_table3(rows, dataset):
    title = f"Table 3, {dataset}: mean pAp@k gain on the test lists, in %"
    console.print_rows(title, rows, without=("dataset", "settings"))


@app.command()
def synthetic_movielens(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.")],
    users: Annotated[int, typer.Option(help="Number of users.", min=1)] = 100,
    items: Annotated[int, typer.Option(help="Number of items.", min=50)] = 200,
    seed: console.Seed = 0,
):
    """Write invented ratings in the form of ml-100k, to try table3 on."""
    from benchmarks.paper.movielens import write_synthetic

    print(write_synthetic(folder, users, items, seed=seed))


if __name__ == "__main__":
    console.main(app, "benchmarks paper")
