"""``reproduce``: tables and figures of the paper, one command each.

A module with an experiment has ``register(app)``, which adds its command, and stands in
`EXPERIMENTS`.
"""

from structsvm_papk.cli import coverage, degenerate, distinguishability, paper, recording

EXPERIMENTS = (paper, coverage, degenerate, distinguishability)

app = recording.App(help="Reproduce tables and figures of the paper.", no_args_is_help=True)


def register(root):
    """Add the group of commands, once it has any."""
    for experiment in EXPERIMENTS:
        experiment.register(app)
    if app.registered_commands:
        root.add_typer(app, name="reproduce")
