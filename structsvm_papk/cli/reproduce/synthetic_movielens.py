"""``reproduce synthetic-movielens``: data to try table3 with."""

from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.errors import InputError
from structsvm_papk.experiments import movielens


def synthetic_movielens(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.")],
    users: Annotated[int, typer.Option(help="Number of users.")] = 100,
    items: Annotated[int, typer.Option(help="Number of items.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Write invented ratings to try table3 without the real data.

    They are shaped like ml-100k.
    """
    if users < 1 or items < 50:
        raise InputError("the folder needs at least 1 user and 50 items")
    print(movielens.write_synthetic(folder, users, items, seed=seed))
