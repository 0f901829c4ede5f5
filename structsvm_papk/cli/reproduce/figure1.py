"""``reproduce figure1``: surrogates under margin conditions."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.experiments import figure1 as experiment


def figure1(
    condition: Annotated[
        list[str] | None,
        typer.Option(help="Only strong, beta, moderate or weak; repeat for more."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the lists and of the start.")] = 0,
    plot: options.Plot = None,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
) -> None:
    """Surrogates under margin conditions.

    The authors' descent, and certified minimisers beside it.
    Includes the weak condition, where Ramp is minimised by the convex-concave procedure.
    """
    options.check_plot(plot)
    conditions = tuple(condition or experiment.SETTINGS)
    cells = options.cells(checkpoint, "figure1")
    with progress.line("minimising") as say:
        panels = experiment.run(conditions, seed, lambda p: say(f"{p.condition} {p.solver}"), cells)
    options.save_plot(plot, lambda: experiment.plot(panels))
    content = {"figure": "figure1", "panels": [p.as_dict() for p in panels]}
    console.answer(as_json, content, _show, panels)


def _show(panels: Sequence[Any]) -> None:
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
