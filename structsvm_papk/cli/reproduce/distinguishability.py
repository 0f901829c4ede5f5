"""``reproduce distinguishability``: from how few users a metric tells two close rankers apart."""

from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.errors import InputError
from structsvm_papk.experiments import distinguishability as study


def distinguishability(
    by: Annotated[
        str,
        typer.Option(help="What grows: users (lists of --items) or items (one list)."),
    ] = "users",
    replicates: Annotated[int, typer.Option(help="Independent repetitions.")] = 200,
    largest: Annotated[
        int | None,
        typer.Option(help="Largest number; by default 2000 users or 20000 items."),
    ] = None,
    items: Annotated[int, typer.Option(help="Items of each user.")] = 100,
    noise: Annotated[
        tuple[float, float],
        typer.Option(help="Noise of the better and of the worse ranker."),
    ] = (1.0, 1.15),
    positive_rate: Annotated[float, typer.Option(help="Share of relevant items.")] = 0.1,
    metric: Annotated[
        list[str] | None, typer.Option(help="Only this metric; repeat for more.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    plot: options.Plot = None,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
) -> None:
    """From how few users a metric tells two close rankers apart.

    Share of repetitions in which the better ranker stays ahead from N on, for each metric:
    consistent distinguishability, Def. 3 of Wang et al. (2013), for NDCG with several discounts and
    for pAp@k, precision@k, AUC and AP.
    """
    _check(replicates, items, positive_rate)
    options.check_plot(plot)
    result = study.run(
        by,
        n_replicates=replicates,
        largest=largest,
        n_items=items,
        noise=noise,
        positive_rate=positive_rate,
        chosen=metric or None,
        seed=seed,
        cells=options.cells(checkpoint, "distinguishability"),
    )
    options.save_plot(plot, lambda: study.plot(result).figure)
    console.answer(as_json, result.as_dict(), _show, result)


def _check(replicates: int, items: int, positive_rate: float) -> None:
    if replicates < 1:
        raise InputError(f"--replicates {replicates} must be at least 1")
    if items < 2:
        raise InputError(f"--items {items} must be at least 2")
    options.check_share("--positive-rate", positive_rate)


def _show(result: Any) -> None:
    """Metrics that need the fewest first."""
    last = result.sizes.size - 2
    shown = sorted({0, *(round(part * last) for part in (0.25, 0.5, 0.75, 1))})
    needed, rows = result.needed(), []
    for name in sorted(needed, key=lambda name: (needed[name] or float("inf"), name)):
        shares = (f"{result.share[name][i]:.2f}" for i in shown)
        rows.append((name, str(needed[name] or "-"), *shares))
    title = (
        f"Better ranker ahead from N {result.by} on ({result.description}, {result.n_replicates} "
        "replicates)"
    )
    sizes = (f">N = {result.sizes[i]}" for i in shown)
    console.print_table(title, ("metric", ">N for 95%", *sizes), rows)
