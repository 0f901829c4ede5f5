"""``reproduce coverage``: do the bounds cover the population risk as often as they say?"""

from typing import Annotated

import typer
from rich.progress import Progress

from structsvm_papk.cli import console, options


def register(app):
    """Add the command."""
    app.command()(coverage)


def coverage(
    draws: Annotated[int, typer.Option(help="Draws of each setting.")] = 1000,
    sizes: Annotated[
        list[int] | None,
        typer.Option("--size", help="Numbers of negatives; repeat. By default 200, 2000, 20000."),
    ] = None,
    law: Annotated[
        list[str] | None, typer.Option(help="Only this pair of laws; repeat for more.")
    ] = None,
    rho: Annotated[float, typer.Option(help="Error probability, at most 1/2.")] = 0.05,
    directions: Annotated[
        int, typer.Option(help="Random linear scorers for the uniform bounds.")
    ] = 100,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
):
    """Coverage and width of every interval on laws whose risk is known; minutes at 1,000 draws."""
    from structsvm_papk.experiments import coverage as study

    screen = console.notes()
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("drawing", total=None)
        rows = study.coverage(
            draws,
            sizes or study.SIZES,
            law,
            rho,
            directions,
            seed,
            progress=lambda row: bar.update(task, description=f"{row.law}, {row.method}"),
            cells=options.cells(checkpoint, "coverage"),
        )
    if as_json:
        console.print_json({"rows": [row.as_dict() for row in rows]})
    else:
        study.print_coverage(rows)
    if any(row.violated for row in rows):
        raise typer.Exit(1)
