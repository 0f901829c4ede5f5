"""``reproduce degenerate``: what ClippedRamp gains where every convex optimum is zero."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from structsvm_papk.cli import console, options
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.plots.convergence import check_plot, save_figure


def register(app):
    """Add the command."""
    app.command()(degenerate)


def degenerate(
    seeds: Annotated[int, typer.Option(help="Number of data sets in each regime.")] = 10,
    regime: Annotated[
        list[str] | None,
        typer.Option(help="gaussian, heavy_tails or mislabelled; repeat. By default all."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Only this one beside ClippedRamp; repeat. By default all."),
    ] = None,
    users: Annotated[int, typer.Option(help="Training users, and held-out users.")] = 600,
    items: Annotated[int, typer.Option(help="Items of each user.")] = 70,
    features: Annotated[int, typer.Option(help="Features.")] = 90,
    k: Annotated[int, typer.Option("--k", help="Number of items that a user is shown.")] = 8,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write every outcome as JSON."),
    ] = None,
    plot: options.Plot = None,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
):
    """Held-out pAp@k of ClippedRamp and its competitors; about a minute of work a data set."""
    from structsvm_papk.experiments import degenerate as study

    options.check_outputs(output, plot)
    if plot is not None:
        check_plot(plot)
    sizes = study.Sizes(users, users, items, features, k)
    regimes = regime or list(study.REGIMES)
    screen = console.notes()
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("data sets", total=max(seeds, 0) * len(regimes))
        found = study.run(
            range(seeds),
            regimes,
            method or tuple(study.METHODS),
            sizes=sizes,
            jobs=jobs,
            callback=lambda part: bar.update(task, advance=1),
            cells=options.cells(checkpoint, "degenerate"),
        )
    if output is not None:
        write_atomically(output, console.as_json(found.as_dict()).encode())
    if plot is not None:
        save_figure(study.figure(found), plot)
    if as_json:
        console.print_json(found.as_dict())
        return
    for name in regimes:
        console.print_table(_table(name, [row for row in found.summary() if row.regime == name], k))


def _table(regime, rows, k):
    """One regime, best method first."""
    table = Table(
        title=f"{regime.replace('_', ' ')}: test pAp@{k} gain over {rows[0].n_seeds} data sets, "
        "95% intervals",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("method", no_wrap=True)
    for name in ("gain", "ClippedRamp less this", "wins", "losses", "w = 0"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in sorted(rows, key=lambda row: -row.mean):
        own = row.method == "ClippedRamp, CCCP"
        table.add_row(
            row.method,
            f"{row.mean:.4f} ± {row.half_width:.4f}",
            "" if own else f"{row.difference:+.4f} ± {row.difference_half_width:.4f}",
            "" if own else str(row.wins),
            "" if own else str(row.losses),
            f"{row.zeros} of {row.n_seeds}" if row.zeros else "",
            style="bold" if own else None,
        )
    return table
