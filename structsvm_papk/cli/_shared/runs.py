"""How runs of solvers are printed."""

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from structsvm_papk.cli._shared import console
from structsvm_papk.solvers.result import Status


def print_runs(runs: Sequence[Any], title: str) -> None:
    """Print the table of runs, in its compact form where the terminal is narrow."""
    table, screen = table_of_runs(runs, title), Console()
    if screen.is_terminal and console.needed_width(screen, table) > screen.width:
        table = table_of_runs(runs, title, compact=True)
    console.print_rich(table)


def table_of_runs(runs: Sequence[Any], title: str, compact: bool = False) -> Table:
    """Objective, bound, gap, effort, metric and status of each run.

    The compact form fits 80 columns: fewer digits, no status.
    """
    places = [place for place in ("train", "test") if place in runs[0].pap_at_k]
    style: dict[str, Any] = {"box": None, "padding": (0, 1, 0, 0)} if compact else {}
    if compact:
        numbers = ["objective", "bound", "gap", "passes", "s", *places]
    else:
        numbers = ["objective", "lower bound", "gap", "passes", "seconds"]
        numbers += [f"pAp@{runs[0].k} {place}" for place in places]
    rows: list[list[str] | None] = []
    for before, run in zip([None, *runs], runs, strict=False):
        if before and before.surrogate != run.surrogate and not compact:
            rows.append(None)
        rows.append(_row(run, places, compact))
    columns = ["surrogate", "solver", *(f">{name}" for name in numbers)]
    return console.table_of(title, columns if compact else [*columns, "status"], rows, **style)


def _row(run: Any, places: Sequence[str], compact: bool) -> list[str]:
    result = run.result
    number = "{:.6f}" if compact else "{:.8f}"
    cells = [
        run.surrogate,
        _solver(run, compact),
        number.format(result.objective),
        _known(result.lower_bound, number),
        _known(result.gap, "{:.0e}" if compact else "{:.1e}"),
        f"{run.result.data_passes:g}",
        f"{run.result.seconds:.2f}",
        *(_known(run.pap_at_k[place], "{:.4f}") for place in places),
    ]
    return cells if compact else [*cells, str(result.status).replace("_", " ")]


def _solver(run: Any, compact: bool) -> str:
    name = str(run.solver).replace("_", " ")
    if "eta" not in run.settings:
        return name
    eta = f"{run.settings['eta']:g}"
    return f"descent {eta}" if compact else f"{name} (eta {eta})"


def _known(value: float, form: str) -> str:
    return form.format(value) if math.isfinite(value) else "-"


def explain(run: Any) -> None:
    """Say on standard error what a status means, where it needs saying."""
    if run.result.status not in (Status.CONVERGED, Status.FINISHED):
        console.warn(f"{run.surrogate}, {run.solver}: {run.result.message}")
    elif run.result.notes:
        console.note(f"{run.surrogate}, {run.solver}: {' '.join(run.result.notes)}")
