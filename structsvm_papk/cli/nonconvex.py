"""``diagnose``: what a surrogate can say about a file, before any training."""

from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from structsvm_papk.cli import console, options
from structsvm_papk.diagnosis.zero_test import (
    SURROGATES,
    Verdict,
    degeneracy_figure,
    diagnose_over_k,
)
from structsvm_papk.errors import InputError
from structsvm_papk.plots.convergence import check_plot, save_figure

_WORDS = {
    Verdict.DEGENERATE: "optimal",
    Verdict.INFORMATIVE: "not optimal",
    Verdict.UNDECIDED: "undecided",
}


def register(app):
    """Add the command."""
    app.command()(options.grouped(diagnose))


def diagnose(
    data: options.DataFile,
    reading: options.Reading,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", help="Number of items that a user is shown; repeat for more."),
    ] = None,
    surrogate: Annotated[
        list[str] | None,
        typer.Option(help="Only this one; repeat for more.", rich_help_panel="Problem"),
    ] = None,
    users: Annotated[
        bool, typer.Option(help="Also test every user alone.", rich_help_panel="Problem")
    ] = True,
    plot: options.Plot = None,
    as_json: options.Json = False,
):
    """Is w = 0 optimal, so that a surrogate says nothing? For all users jointly, and one by one."""
    names = _checked(k, surrogate, plot, users)
    table = reading.table(data)
    found = _run(reading.lists(table), k, names, users)
    options.say_columns(table)
    if plot is not None:
        save_figure(degeneracy_figure(found), plot)
        console.note(f"plot written to {plot}")
    if as_json:
        console.print_json({"diagnoses": [one.as_dict() for one in found]})
        return
    console.print_table(_table(found))
    if any(one.zero_is_optimal for one in found):
        console.note(
            "Where w = 0 is optimal, training returns it for every alpha; try surrogate "
            "clipped_ramp, another k, or better features."
        )


def _checked(ks, surrogates, plot, users):
    if not ks:
        raise InputError("give --k, the number of items that a user is shown; repeat for more")
    unknown = [name for name in surrogates or () if name not in SURROGATES]
    if unknown:
        raise InputError(f"no diagnosis of {unknown[0]!r}: choose from {', '.join(SURROGATES)}")
    options.check_outputs(plot)
    if plot is not None:
        check_plot(plot)
        if not users:
            raise InputError("--plot shows the users' verdicts: leave --no-users out")
    return surrogates or SURROGATES


def _run(rows, ks, names, users):
    screen = console.notes()
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("diagnosing", total=len(ks) * len(names))
        return diagnose_over_k(rows, ks, names, users, lambda one: bar.update(task, advance=1))


def _table(found):
    table = Table(title="Is w = 0 optimal?", title_justify="left", header_style="bold")
    for name in ("k", "surrogate", "users", "for all users"):
        table.add_column(name, no_wrap=True)
    for name in ("distance", "alone: optimal", "not", "undecided"):
        table.add_column(name, justify="right", no_wrap=True)
    for place, one in enumerate(found):
        verdict = one.joint.verdict
        style = "yellow" if verdict is Verdict.DEGENERATE else "green"
        shares = [f"{one.share(v):.0%}" if one.users else "-" for v in _WORDS]
        table.add_row(
            str(one.k),
            one.surrogate,
            str(one.n_users),
            f"[{style}]{_WORDS[verdict]}[/{style}]",
            _distance(one.joint),
            *shares,
            end_section=place + 1 == len(found) or found[place + 1].k != one.k,
        )
    return table


def _distance(test):
    """The distance of 0 from the subdifferential, or how steeply a direction falls."""
    if test.verdict is Verdict.INFORMATIVE:
        return f"{test.lower_bound:.2e}"
    return "0" if test.verdict is Verdict.DEGENERATE else "-"
