"""``example-data``: files to try the other commands on."""

from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli._shared import console
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.datasets.generators import recommender_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.trec import write_run


def example_data(
    *,
    folder: Annotated[Path, typer.Argument(help="Folder to write to.")] = Path("."),
    n_users: Annotated[int, typer.Option(help="Number of users.")] = 400,
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    runs: Annotated[
        bool,
        typer.Option(
            "--runs",
            help="Write runs and judgments for fuse instead: six retrievers, TREC Deep Learning "
            "2019 (dl19) and 2020 (dl20).",
        ),
    ] = False,
) -> None:
    """Write example files for the other commands: train.csv, new.csv and liked.csv.

    Each row of train.csv and new.csv is an item recommended to a user: user, item, four scores,
    and whether it is relevant. liked.csv has the relevant pairs of new.csv.
    """
    if runs:
        _write_runs(folder)
        return
    files = [folder / "train.csv", folder / "new.csv"]
    liked = folder / "liked.csv"
    for file in [*files, liked]:
        if file.exists():
            raise InputError(f"{file} exists; remove it, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, frame in zip(files, recommender_lists(n_users=n_users, seed=seed), strict=True):
        write_atomically(file, frame.to_csv(index=False).encode())
        console.note(f"{len(frame)} rows of {n_users} users written to {file}")

    pairs = frame.loc[frame["relevant"] == 1, ["user", "item"]]
    write_atomically(liked, pairs.to_csv(index=False).encode())
    console.note(f"{len(pairs)} relevant pairs of {files[1]} written to {liked}")


def _write_runs(folder: Path) -> None:
    sample = retrieval_runs()
    years = {"dl19": sample.train, "dl20": sample.test}
    for year in years:
        if (folder / f"{year}.qrels").exists():
            raise InputError(f"{folder / year}.qrels exists; remove it, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for year, collection in years.items():
        for name, run in collection.runs.items():
            write_run(folder / f"{year}.{name}.run", run, name)
        text = "".join(
            f"{judgment.query} 0 {judgment.document} {judgment.grade}\n"
            for judgment in collection.judgments.itertuples(index=False)
        )
        write_atomically(folder / f"{year}.qrels", text.encode())
        console.note(
            f"{len(collection.runs)} runs and judgments of {collection.n_queries} queries written "
            f"to {folder / year}.*"
        )
