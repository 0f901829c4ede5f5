"""``reproduce table1|table2|figure1|table3``: the paper's tables and figure, recomputed."""

from rich.table import Table

from structsvm_papk.cli import console, options


def register(app):
    """Add the commands."""
    app.command()(table1)


def table1(as_json: options.Json = False):
    """The metrics of Table 1 on its five rankings, beside the published values."""
    from structsvm_papk.experiments import table1 as experiment

    found = experiment.run()
    if as_json:
        console.print_json(found)
        return
    table = Table(title="Table 1", title_justify="left")
    for name in ("ranker", "labels", "metric", "published", "measured", "difference"):
        table.add_column(name, justify="left" if name in ("ranker", "labels") else "right")
    for row in found["rows"]:
        measured, difference = f"{row['measured']:.6f}", f"{row['difference']:.0e}"
        cells = (row["ranker"], row["labels"], row["metric"], row["published_as"])
        table.add_row(*cells, measured, difference)
    console.print_table(table)
    print(f"largest absolute difference: {found['max_abs_difference']:.1e}")
