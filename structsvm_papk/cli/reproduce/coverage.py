"""``reproduce coverage``: do the bounds cover the population risk as often as they say?"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.experiments import coverage as study


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
) -> None:
    """Coverage and width of every interval on laws whose risk is known.

    Takes minutes at 1,000 draws.
    """
    with progress.bar("drawing") as update:
        rows = study.coverage(
            draws,
            sizes or study.SIZES,
            law,
            rho,
            directions,
            seed,
            progress=lambda row: update(description=f"{row.law}, {row.method}"),
            cells=options.cells(checkpoint, "coverage"),
        )
    console.answer(as_json, {"rows": [row.as_dict() for row in rows]}, _show, rows)
    if any(row.violated for row in rows):
        raise typer.Exit(1)


def _show(rows: Sequence[Any]) -> None:
    lines = []
    for row in rows:
        covered = f"{row.covered:.3f}"
        sizes = (str(n) for n in (row.n_pos, row.n_neg, row.k, row.n_draws))
        lines.append(
            (
                row.method,
                row.law,
                *sizes,
                "-" if np.isnan(row.risk) else f"{row.risk:.3f}",
                f"[red]{covered}[/red]" if row.violated else covered,
                f"{row.half_width:.3f}",
                "-" if np.isnan(row.ratio) else f"{row.ratio:.1f}",
                f"{row.vacuous:.2f}",
                "yes" if row.guaranteed else "no",
            )
        )
    columns = (
        *("method", "law", ">n_pos", ">n_neg", ">k", ">draws", ">R", ">covered", ">half-width"),
        *(">ratio", ">vacuous", "guaranteed"),
    )
    console.print_table(f"Coverage at level {rows[0].nominal:g}", columns, lines)
    broken = [f"{row.method} ({row.law}, n_neg = {row.n_neg})" for row in rows if row.violated]
    print(
        f"Violated guarantees: {'; '.join(broken)}"
        if broken
        else "No guaranteed bound failed more often than its level."
    )
