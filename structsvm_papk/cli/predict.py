"""``predict``: score the rows of a file with a model file, or list the best of each user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs
from structsvm_papk.cli._shared.reading import Reading, say_columns
from structsvm_papk.cli._shared.scores import (
    contributions_of,
    item_column,
    refuse_unknown_users,
    scores_of,
)
from structsvm_papk.data.roles import Kind
from structsvm_papk.data.top import scored_rows, top_rows
from structsvm_papk.files.model import load_model
from structsvm_papk.files.tables import format_of, read_columns, write_table

if TYPE_CHECKING:
    import pandas as pd


def predict(
    *,
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    data: options.Data,
    label: options.Label = "label",
    group: options.Group = None,
    item: options.Item = None,
    ignore: options.Ignore = None,
    one_list: options.OneList = False,
    top: Annotated[
        int | None,
        options.output_option(
            help="Only the N best rows of each list, best first, with their rank.",
            metavar="N",
            min=1,
        ),
    ] = None,
    contributions: Annotated[
        bool,
        options.output_option(
            "--contributions",
            help="What each column of features adds to the score, too, as 'from NAME'.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        options.output_option(
            "--output",
            "-o",
            help="Where to write CSV (.tsv: TSV, .parquet: Parquet); by default standard output.",
            metavar="FILE",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Score rows with a model, or print the top of each list (user or query).

    Writes the columns user, item (with its name in the file; without items the number of the row,
    from 0) and score, with --top also rank. Rows keep their order; larger scores rank higher.
    Of two rows of a list the differences of contributions say why one stands above the other.
    """
    check_outputs([model, data], [(output, "CSV, TSV or Parquet")])
    trained = load_model(model)
    items = _items(data, item, group)
    no_features = list(ignore or ())
    if item:
        no_features.append(item)
    reading = Reading(label=label, group=group, ignore=no_features)
    table = reading.table(data, like=trained, require_labels=False)
    scores = scores_of(trained, table, one_list)
    users = None if one_list else table.groups
    if top is not None and not one_list:
        refuse_unknown_users(table)
    terms = None
    if contributions:
        terms = contributions_of(trained, table, one_list)
    if top is None:
        frame = scored_rows(scores, users, items, terms)
    else:
        frame = top_rows(scores, users, items, top, terms)
    say_columns(table)
    if output is not None:
        write_table(output, frame)
    if as_json:
        content = _in_short(output, frame)
        if output is None:
            content = _all(frame, terms, is_top=top is not None)
        console.print_json({"model": str(model), "n_rows": scores.size, **content})
    elif output is None:
        console.write_data(frame.to_csv(None, index=False, lineterminator="\n"))
    else:
        console.note(f"{len(frame)} scores written to {output}")


def _items(data: Path, item: str | None, group: str | None) -> pd.Series | None:
    """The column of items of a table, with its name; None where there is none."""
    import pandas as pd

    format = format_of(data)
    name = None if format is None else item_column(data, format, item, group)
    if name is None:
        return None
    return pd.Series(read_columns(data, str(format), {name: Kind.ID})[name], name=name)


def _in_short(output: Path | None, frame: pd.DataFrame) -> dict[str, Any]:
    """Of scores that were written to a file, for JSON."""
    scores = frame["score"]
    return {
        "output": str(output),
        "smallest": scores.min(),
        "mean": scores.mean(),
        "largest": scores.max(),
    }


def _all(frame: pd.DataFrame, terms: pd.DataFrame | None, is_top: bool) -> dict[str, Any]:
    """All scores, or the best rows of each list, for JSON."""
    if is_top:
        return {"top": frame.to_dict("records")}
    content: dict[str, Any] = {"scores": frame["score"].tolist()}
    if terms is not None:
        content["contributions"] = terms.to_dict("list")
    return content
