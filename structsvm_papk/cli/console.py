"""What the commands print: results on standard output, everything else on standard error."""

import json
import math
import sys

from rich.console import Console
from rich.table import Table

from structsvm_papk.result import Status


def notes():
    """Console for notes, warnings and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text, style="dim"):
    """Print one note on standard error."""
    notes().print(text, style=style, markup=False)


def print_json(content):
    """Print one JSON object; numbers that JSON does not know become null."""
    sys.stdout.write(json.dumps(_plain(content), allow_nan=False) + "\n")


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(table):
    """Print a table on standard output, as wide as it needs to be where that is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    console.print(table)


def table_of_runs(runs, title):
    """Solver, surrogate, objective, bound, gap, effort and metric of each run."""
    table = Table(title=title, title_justify="left", header_style="bold")
    names = ["objective", "lower bound", "gap", "passes", "seconds"]
    where = [name for name in ("train", "test") if name in runs[0].pap_at_k]
    table.add_column("surrogate")
    table.add_column("solver")
    for name in names + [f"pAp@{runs[0].k} {place}" for place in where]:
        table.add_column(name, justify="right")
    table.add_column("status")
    for position, run in enumerate(runs):
        last = position + 1 == len(runs) or runs[position + 1].surrogate != run.surrogate
        table.add_row(*_row(run, where), end_section=last)
    return table


def _row(run, where):
    result = run.result
    step = f" (eta {run.settings['eta']:g})" if "eta" in run.settings else ""
    return [
        run.surrogate,
        run.solver + step,
        f"{result.objective:.8f}",
        _known(result.lower_bound, "{:.8f}"),
        _known(result.gap, "{:.1e}"),
        f"{run.data_passes:g}",
        f"{run.seconds:.2f}",
        *(_known(run.pap_at_k[place], "{:.4f}") for place in where),
        str(result.status).replace("_", " "),
    ]


def _known(value, form):
    return form.format(value) if math.isfinite(value) else "-"


def explain(run):
    """Say on standard error what a status means, where it needs saying."""
    if run.result.status not in (Status.CONVERGED, Status.FINISHED):
        note(f"{run.surrogate}, {run.solver}: {run.result.message}", style="yellow")
