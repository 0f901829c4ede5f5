"""``diagnose``: what a surrogate can say about a file, before any training."""

from dataclasses import dataclass
from typing import Annotated

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.diagnosis.zero_test import SURROGATES, Verdict, diagnose_over_k
from structsvm_papk.errors import InputError
from structsvm_papk.plots.convergence import save_figure
from structsvm_papk.plots.degeneracy import degeneracy_figure

_WORDS = {
    Verdict.DEGENERATE: "optimal",
    Verdict.INFORMATIVE: "not optimal",
    Verdict.UNDECIDED: "undecided",
}


@dataclass(frozen=True)
class Problem:
    """What is asked."""

    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k",
            help="Number of items that a user is shown; repeat for more.",
            rich_help_panel=options.PROBLEM,
        ),
    ] = None
    surrogate: Annotated[
        list[str] | None,
        typer.Option(help="Only this one; repeat for more.", rich_help_panel=options.PROBLEM),
    ] = None
    users: Annotated[
        bool, typer.Option(help="Also test every user alone.", rich_help_panel=options.PROBLEM)
    ] = True


def diagnose(
    data: options.DataFile,
    problem: Problem,
    weighting: options.Weighting,
    reading: options.Reading,
    plot: options.Plot = None,
    as_json: options.Json = False,
):
    """Is w = 0 optimal, so that a surrogate says nothing? For all users jointly, and one by one."""
    k, users = problem.k or [], problem.users
    names = _checked(k, problem.surrogate, plot, users)
    table = reading.table(data)
    lists = reading.lists(table)
    for one in k:
        lists = weighting.lists(lists, weighting.surrogate(names[0], one))
    with progress.bar("diagnosing", total=len(k) * len(names)) as update:
        answers = diagnose_over_k(
            lists, k, names, users, lambda one: update(advance=1), weighting.depth
        )
    options.say_columns(table)
    if plot is not None:
        save_figure(degeneracy_figure(answers), plot)
        console.note(f"plot written to {plot}")
    if as_json:
        console.print_json({"diagnoses": [one.as_dict() for one in answers]})
        return
    _print(answers)
    if any(one.zero_is_optimal for one in answers):
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
    options.check_plot(plot)
    if plot is not None and not users:
        raise InputError("--plot shows the users' verdicts: leave --no-users out")
    return surrogates or SURROGATES


def _print(answers):
    rows = []
    for before, one in zip([None, *answers], answers, strict=False):
        if before and before.k != one.k:
            rows.append(None)
        verdict = one.joint.verdict
        style = "yellow" if verdict is Verdict.DEGENERATE else "green"
        shares = [f"{one.share(v):.0%}" if one.users else "-" for v in _WORDS]
        answer = f"[{style}]{_WORDS[verdict]}[/{style}]"
        cells = (str(one.k), one.surrogate, str(one.n_users), answer, _distance(one.joint))
        rows.append((*cells, *shares))
    columns = ("k", "surrogate", "users", "for all users", ">distance", ">alone: optimal")
    console.print_table("Is w = 0 optimal?", (*columns, ">not", ">undecided"), rows)


def _distance(test):
    """The distance of 0 from the subdifferential, or how steeply a direction falls."""
    if test.verdict is Verdict.INFORMATIVE:
        return f"{test.lower_bound:.2e}"
    return "0" if test.verdict is Verdict.DEGENERATE else "-"
