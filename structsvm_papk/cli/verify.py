"""``verify``: which of the published claims hold."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk import propositions
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.plots.page import check_templates
from structsvm_papk.propositions.running import ALL_IDS, expanded, render


def verify(
    *,
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this check or group: theorem1, theorem2, prop1 to prop6, equation9, "
            "algorithm1, ts, margin, ..; repeat for more. docs/propositions.md has the statements.",
            metavar="ID",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    effort: Annotated[
        str, typer.Option(help="quick (seconds), normal (two to four minutes) or thorough.")
    ] = "normal",
    jobs: Annotated[
        int, typer.Option(help="Number of processes; 0: one for each core.", min=0)
    ] = 0,
    report: Annotated[
        Path | None,
        options.output_option(help="Also write a self-contained HTML page here.", metavar="FILE"),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Search for counterexamples to the claims of the paper.

    Prints which claims hold, and the smallest counterexample to each that does not.
    """
    check_outputs([], [(report, "HTML")])
    if report is not None:
        check_templates()
    ids = expanded(check or ALL_IDS)
    start = time.perf_counter()
    with console.bar("searching", total=len(ids)) as update:

        def say(result: Any) -> None:
            update(advance=1, description=f"{result.id} {result.verdict}")

        n_jobs = jobs or os.cpu_count() or 1
        checks = propositions.verify(ids, seed, effort, n_jobs, progress=say)
    if report is not None:
        write_atomically(report, render(checks, seed, effort).encode())
        console.note(f"report written to {report}")
    content = {"seed": seed, "effort": effort, "checks": [result.as_dict() for result in checks]}
    console.answer(as_json, content, _show, checks)
    console.note(f"{len(checks)} checks in {time.perf_counter() - start:.0f} s")
    failed = [result.id for result in checks if not result.control_works]
    if failed:
        console.note(f"controls that did not work: {', '.join(failed)}", style="red")
        raise typer.Exit(1)


def _show(checks: Sequence[Any]) -> None:
    rows = []
    for check in checks:
        color = "green" if check.verdict == "holds" else "red"
        control = f"{check.control}: {check.control_verdict}"
        if not check.control_works:
            control = f"[red]{control}[/red]"
        rows.append(
            (
                check.id,
                check.formula,
                f"[{color}]{check.verdict}[/]",
                f"{check.instances:,}",
                f"{check.worst:.1e}",
                control,
            )
        )
    columns = ("check", "claim", "verdict", ">instances", ">worst", "control")
    console.print_table("Which claims hold", columns, rows)
    _show_counterexamples([check for check in checks if check.counterexample is not None])


def _show_counterexamples(checks: Sequence[Any]) -> None:
    rows = []
    for check in checks:
        example = check.counterexample
        positives = "; ".join(_numbers(scores["positives"]) for scores in example["lists"])
        negatives = "; ".join(_numbers(scores["negatives"]) for scores in example["lists"])
        values = ", ".join(f"{name} = {_numbers(v)}" for name, v in example["values"].items())
        rows.append((check.id, str(example["k"]), positives, negatives, values))
    if rows:
        columns = ("check", "k", "positives", "negatives", "values")
        console.print_table("Counterexamples", columns, rows)


def _numbers(values: Any) -> str:
    if isinstance(values, list):
        return "(" + ", ".join(f"{v:.4g}" for v in values) + ")"
    return f"{values:.4g}"
