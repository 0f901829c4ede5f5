"""``reproduce figure1``: surrogates under margin conditions."""

import math
from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.experiments import figure1 as experiment
from structsvm_papk.plots.convergence import save_figure


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
    """Surrogates under margin conditions.

    The authors' descent, and certified minimisers beside it.
    Includes the weak condition, where Ramp is minimised by the convex-concave procedure.
    """
    options.check_plot(plot)
    conditions = tuple(condition or experiment.SETTINGS)
    cells = options.cells(checkpoint, "figure1")
    with progress.line("minimising") as say:
        panels = experiment.run(conditions, seed, lambda p: say(f"{p.condition} {p.solver}"), cells)
    if plot is not None:
        save_figure(experiment.plot(panels), plot)
    if as_json:
        console.print_json({"figure": "figure1", "panels": [p.as_dict() for p in panels]})
        return
    _print(panels)


def _print(panels):
    rows = []
    for panel in panels:
        last = panel.as_dict()
        values = (f"{value:.4f}" for value in last["measured"].values())
        gap = f"{last['gap']:.1e}" if math.isfinite(last["gap"]) else "-"
        zero = last["published"]["tends_to_zero"]
        shown = "not drawn" if zero is None else ", ".join(zero)
        rows.append((panel.condition, panel.optimised, panel.solver, *values, gap, shown))
    names = (f">{name}" for name in (*panels[0].curves, "gap"))
    columns = ("condition", "minimised", "solver", *names, "tends to zero in the paper")
    console.print_table("Figure 1: values where the runs end", columns, rows)
