"""``reproduce synthetic-interactions``: data to try rerank with."""

from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.datasets.interactions import write_interactions


def synthetic_interactions(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.")],
    users: Annotated[int, typer.Option(help="Number of users.")] = 300,
    items: Annotated[int, typer.Option(help="Number of items.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Write invented interactions to try rerank with."""
    print(write_interactions(folder, users, items, seed=seed))
