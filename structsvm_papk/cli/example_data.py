"""``example-data``: files to try the other commands on."""

from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli._shared import console
from structsvm_papk.datasets import recommender_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically


def example_data(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write.")] = Path("."),
    n_users: Annotated[int, typer.Option(help="Users.")] = 400,
    seed: Annotated[int, typer.Option(help="Other data for another seed.")] = 0,
) -> None:
    """Write train.csv and new.csv: candidates with four scores each.

    Each row is a candidate of a user: user, item, four scores, and whether it is relevant.
    """
    files = [folder / "train.csv", folder / "new.csv"]
    for file in files:
        if file.exists():
            raise InputError(f"{file} exists; remove it, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, frame in zip(files, recommender_lists(n_users=n_users, seed=seed), strict=True):
        write_atomically(file, frame.to_csv(index=False).encode())
        console.note(f"{len(frame)} rows of {n_users} users written to {file}")
