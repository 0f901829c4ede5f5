"""``predict``: score the rows of a file with a model file, or list the best of each user."""

from pathlib import Path
from typing import Annotated, Any

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
    import pandas as pd

    check_outputs([model, data], [(output, "CSV, TSV or Parquet")])
    trained = load_model(model)
    format = format_of(data)
    name = None if format is None else item_column(data, format, item, group)
    items = None
    if name is not None:
        items = pd.Series(read_columns(data, str(format), {name: Kind.ID})[name], name=name)
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
        content: dict[str, Any]
        if output is not None:
            content = {
                "output": str(output),
                "smallest": frame["score"].min(),
                "mean": frame["score"].mean(),
                "largest": frame["score"].max(),
            }
        elif top is not None:
            content = {"top": frame.to_dict("records")}
        else:
            content = {"scores": frame["score"].tolist()}
            if terms is not None:
                content["contributions"] = terms.to_dict("list")
        console.print_json({"model": str(model), "n_rows": scores.size, **content})
    elif output is None:
        console.write_data(frame.to_csv(None, index=False, lineterminator="\n"))
    else:
        console.note(f"{len(frame)} scores written to {output}")
