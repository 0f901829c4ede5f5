"""``reproduce rerank``: re-rankers over the scores of recommenders, on people's interactions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.experiments import rerank as study


def rerank(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder or zip with train.tsv and test.tsv: user and item ids from 0, by tabs."
        ),
    ],
    k: Annotated[int, typer.Option("--k", help="Number of items that a user is shown.")] = 20,
    candidates: Annotated[int, typer.Option(help="Items of a user that re-rankers see.")] = 200,
    train_users: Annotated[
        int, typer.Option(help="Users, drawn at random, on whose lists re-rankers are trained.")
    ] = 5000,
    test_users: Annotated[
        int | None,
        typer.Option(help="Measure on this many users, drawn at random. By default all."),
    ] = None,
    first_stage: Annotated[
        str,
        typer.Option(help="Recommenders: rectools, own, or auto (RecTools where installed)."),
    ] = "auto",
    method: Annotated[
        list[str] | None,
        typer.Option(help="Only this re-ranker beside PAPKRankerCV; repeat. By default all."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of splits and draws.")] = 0,
    plot: options.Plot = None,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
) -> None:
    """NDCG, recall and pAp at k of recommenders, and of re-rankers.

    Re-rankers order a recommender's best items by the scores of several ones.
    """
    options.check_plot(plot)
    plan = study.Plan(k, candidates, train_users, test_users, first_stage, seed)
    cells = options.cells(checkpoint, "rerank")
    with progress.line("starting") as say:
        answer = study.run(folder, plan, tuple(method or ()), cells, say)
    for remark in answer["remarks"]:
        console.warn(remark)
    options.save_plot(plot, lambda: study.figure(answer))
    console.answer(as_json, answer, _show, answer)


def _show(answer: dict[str, Any]) -> None:
    """Best first; what is published stands among what was measured."""
    lines = []
    for row in sorted(answer["rows"] + answer["published"], key=lambda row: -row["ndcg"]):
        numbers = [f"{row[name]:.4f}" if name in row else "-" for name in ("ndcg", "recall", "pap")]
        ahead = "-"
        if row.get("lower") is not None:
            ahead = f"{row['ours_ahead']:+.4f} ({row['lower']:+.4f} to {row['upper']:+.4f})"
        seconds = f"{row['seconds']:.1f}" if "seconds" in row else "-"
        kind = row.get("kind", "published")
        lines.append((row["name"], kind, *numbers, ahead, seconds))
    k = answer["k"]
    title = (
        f"{answer['dataset'] or 'interactions'}: {answer['n_test_users']} users, "
        f"{answer['n_items']} items; {answer['candidates']} candidates hold "
        f"{answer['candidate_recall']:.0%} of the test items; recommenders: "
        f"{answer['first_stage']}"
    )
    columns: tuple[str, ...] = ("method", "", f">NDCG@{k}", f">recall@{k}", f">pAp@{k}")
    columns += (f">{study.OURS} ahead by (95%)", ">CPU s")
    console.print_table(title, columns, lines)
    if answer["published"]:
        console.note(f"published: {answer['published'][0]['source']}")
