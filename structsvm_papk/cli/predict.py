"""``predict``: score the rows of a file with a model file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk._types import Array
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.scores import scores_of
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.model import load_model


def predict(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    data: options.DataFile,
    columns: options.Columns,
    output: Annotated[
        Path | None,
        options.option(
            options.OUTPUT, "Where to write the scores; by default standard output.",
            "--output", "-o", metavar="FILE",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Score every row of a file with a model.

    One number per line, in the order of the rows; larger ranks higher.
    """
    options.check_outputs(output)
    trained = load_model(model)
    table = columns.table(data, like=trained, require_labels=False)
    scores = scores_of(trained, table)
    options.say_columns(table)
    if output is not None:
        write_atomically(output, _lines(scores).encode())
    if as_json:
        content = {"scores": scores.tolist()} if output is None else _summary(scores, output)
        console.print_json({"model": str(model), "n_rows": scores.size, **content})
    elif output is None:
        print(_lines(scores), end="")
    else:
        console.note(f"{scores.size} scores written to {output}")


def _summary(scores: Array, output: Path) -> dict[str, Any]:
    """What characterises scores that stand in a file."""
    ends = {"smallest": scores.min(), "mean": scores.mean(), "largest": scores.max()}
    return {"output": str(output), **ends}


def _lines(scores: Array) -> str:
    return "".join(f"{score!r}\n" for score in scores.tolist())
