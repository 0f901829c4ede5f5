"""``reproduce degenerate``: what ClippedRamp gains where every convex optimum is zero."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.cli._shared.grouped import Panel
from structsvm_papk.experiments import degenerate as study
from structsvm_papk.files.atomic import write_atomically

_SIZES = Panel("Sizes")


@dataclass(frozen=True)
class Sizes:
    """Of every data set."""

    users: int = _SIZES(600, "Training users, and held-out users.")
    items: int = _SIZES(70, "Items of each user.")
    features: int = _SIZES(90, "Features.")
    k: int = _SIZES(8, options.SHOWN, flags="--k")


def degenerate(
    sizes: Sizes,
    seeds: Annotated[int, typer.Option(help="Number of data sets in each regime.")] = 10,
    regime: Annotated[
        list[str] | None,
        typer.Option(help="gaussian, heavy_tails or mislabelled; repeat. By default all."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Only this one beside ClippedRamp; repeat. By default all."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write every outcome as JSON."),
    ] = None,
    plot: options.Plot = None,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
) -> None:
    """What ClippedRamp gains where every convex optimum is zero.

    Held-out pAp@k of ClippedRamp and its competitors; about a minute of work a data set.
    """
    options.check_outputs(output)
    options.check_plot(plot)
    k = sizes.k
    regimes = regime or list(study.REGIMES)
    with progress.bar("data sets", total=max(seeds, 0) * len(regimes)) as update:
        result = study.run(
            range(seeds),
            regimes,
            method or tuple(study.METHODS),
            sizes=study.Sizes(sizes.users, sizes.users, sizes.items, sizes.features, k),
            jobs=jobs,
            callback=lambda part: update(advance=1),
            cells=options.cells(checkpoint, "degenerate"),
        )
    if output is not None:
        write_atomically(output, console.as_json(result.as_dict()).encode())
    options.save_plot(plot, lambda: study.figure(result))
    console.answer(as_json, result.as_dict(), _show, result.summary(), regimes, k)


def _show(rows: Sequence[Any], regimes: Sequence[str], k: int) -> None:
    for name in regimes:
        _show_regime(name, [row for row in rows if row.regime == name], k)


def _show_regime(regime: str, rows: Sequence[Any], k: int) -> None:
    """One regime, best method first."""
    lines = []
    for row in sorted(rows, key=lambda row: -row.mean):
        gain = f"{row.mean:.4f} ± {row.half_width:.4f}"
        zeros = f"{row.zeros} of {row.n_seeds}" if row.zeros else ""
        if row.method == "ClippedRamp, CCCP":
            lines.append((f"[bold]{row.method}[/bold]", f"[bold]{gain}[/bold]", "", "", "", zeros))
        else:
            less = f"{row.difference:+.4f} ± {row.difference_half_width:.4f}"
            lines.append((row.method, gain, less, str(row.wins), str(row.losses), zeros))
    title = (
        f"{regime.replace('_', ' ')}: test pAp@{k} gain over {rows[0].n_seeds} data sets, 95% "
        "intervals"
    )
    columns = ("method", ">gain", ">ClippedRamp less this", ">wins", ">losses", ">w = 0")
    console.print_table(title, columns, lines)
