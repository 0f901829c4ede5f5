"""``reproduce``: tables and figures of the paper, and our own studies, one command each.

A module has ``register(app)``, which adds its command, and stands in `EXPERIMENTS`.
"""

from structsvm_papk.cli._shared import recording
from structsvm_papk.cli.reproduce import (
    coverage,
    degenerate,
    distinguishability,
    figure1,
    rerank,
    table1,
    table2,
    table3,
)

EXPERIMENTS = (table1, table2, figure1, table3, coverage, degenerate, distinguishability, rerank)

app = recording.App(help="Reproduce tables and figures of the paper.", no_args_is_help=True)
for _experiment in EXPERIMENTS:
    _experiment.register(app)


def register(root):
    """Add the group of commands."""
    root.add_typer(app, name="reproduce")
