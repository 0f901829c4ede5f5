"""``verify``, ``margins`` and ``bound``: the theory, checked on the spot."""

import os
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from structsvm_papk import bounds, plots
from structsvm_papk.cli import console, options
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.model import load_model
from structsvm_papk.files.pages import check_templates

_BOUND = "Which bound"
_SIZES = "Sizes"


def register(app):
    """Add the commands."""
    for command in (verify, margins, bound):
        app.command()(options.grouped(command))


# ----------------------------------------------------------------- verify


def verify(
    check: Annotated[
        list[str] | None, typer.Option("--check", metavar="ID", help="Only this one; repeat.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    effort: Annotated[
        str, typer.Option(help="quick (seconds), normal (a minute or two) or thorough.")
    ] = "normal",
    jobs: Annotated[int, typer.Option(help="Processes; 0: one for each core.")] = 0,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a self-contained HTML page here."),
    ] = None,
    as_json: options.Json = False,
):
    """Search the published claims for counterexamples and print which ones hold."""
    from structsvm_papk import propositions

    options.check_outputs(report)
    if report is not None:
        check_templates()
    if jobs < 0:
        raise InputError(f"jobs = {jobs}: a number of processes, or 0 for one each core")
    ids = list(check or propositions.ALL_IDS)
    start = time.perf_counter()
    with _bar(len(ids)) as advance:
        checks = propositions.verify(ids, seed, effort, jobs or os.cpu_count() or 1, advance)
    regimes = [] if check else propositions.regimes(seed)
    if report is not None:
        from structsvm_papk.propositions.report import render

        write_atomically(report, render(checks, seed, effort, regimes).encode())
        console.note(f"report written to {report}")
    if as_json:
        console.print_json(
            {"seed": seed, "effort": effort, "checks": [c.as_dict() for c in checks]}
        )
    else:
        console.print_table(_verdicts(checks))
        _print_counterexamples(checks)
        _print_regimes(regimes)
        console.note(f"{len(checks)} checks in {time.perf_counter() - start:.0f} s")
    failed = [c.id for c in checks if not c.control_works]
    if failed:
        console.note(f"controls that did not work: {', '.join(failed)}", style="red")
        raise typer.Exit(1)


def _bar(total):
    """Show a progress bar on standard error; yields what to call after each check."""
    return _Advance(total)


class _Advance:
    def __init__(self, total):
        self._total = total
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        screen = console.notes()
        self._bar = Progress(
            *columns,
            TimeElapsedColumn(),
            console=screen,
            transient=True,
            disable=not screen.is_terminal,
        )

    def __enter__(self):
        self._bar.start()
        self._task = self._bar.add_task("searching", total=self._total)
        return lambda check: self._bar.update(
            self._task, advance=1, description=f"{check.id} {check.verdict}"
        )

    def __exit__(self, *exception):
        self._bar.stop()


def _verdicts(checks):
    table = Table(title="Which claims hold", title_justify="left", header_style="bold")
    table.add_column("check", no_wrap=True)
    table.add_column("claim")
    table.add_column("verdict")
    table.add_column("instances", justify="right")
    table.add_column("worst", justify="right")
    table.add_column("control")
    for c in checks:
        style = "red" if c.verdict == "counterexample" else "green"
        verdict = "holds" if c.verdict == "holds" else "counterexample"
        works = f"{c.control}: {c.control_verdict}"
        table.add_row(
            c.id,
            c.formula,
            f"[{style}]{verdict}[/{style}]",
            f"{c.instances:,}",
            f"{c.worst:.1e}",
            works if c.control_works else f"[red]{works}[/red]",
        )
    return table


def _print_counterexamples(checks):
    table = Table(title="Counterexamples", title_justify="left", header_style="bold")
    for name in ("check", "k", "positives", "negatives", "values"):
        table.add_column(name, no_wrap=name == "check")
    for c in checks:
        if c.counterexample is None:
            continue
        found = c.counterexample
        sides = [
            "; ".join(_numbers(one[side]) for one in found["lists"])
            for side in ("positives", "negatives")
        ]
        values = ", ".join(f"{k} = {_numbers(v)}" for k, v in found["values"].items())
        table.add_row(c.id, str(found["k"]), *sides, values)
    if table.row_count:
        console.print_table(table)


def _print_regimes(regimes):
    """Print where consistency ends: conditions some w realises, and risks at certified optima."""
    if not regimes:
        return
    table = Table(title="Negatives moved up along the truth", title_justify="left")
    table.add_column("shift", justify="right")
    for name in regimes[0]["conditions"]:
        table.add_column(f"{name}: some w", justify="right")
    for name in regimes[0]["risk"]:
        table.add_column(f"risk, optimum of {name}", justify="right")
    for row in regimes:
        risks = (f"{value:.4g}" for value in row["risk"].values())
        table.add_row(f"{row['shift']:g}", *row["conditions"].values(), *risks)
    console.print_table(table)


def _numbers(values):
    if isinstance(values, list):
        return "(" + ", ".join(f"{v:.4g}" for v in values) + ")"
    return f"{values:.4g}"


# ----------------------------------------------------------------- margins


def margins(
    data: options.DataFile,
    reading: options.Reading,
    k: options.K,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check the scores of this model file.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check these scores, one number per row.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Margin to check the scores for.")] = 1.0,
    condition: Annotated[
        list[str] | None,
        typer.Option(help="weak, beta, moderate or strong; repeat for more. By default all."),
    ] = None,
    search: Annotated[
        bool, typer.Option(help="Look for linear scorers that realise the conditions.")
    ] = True,
    per_user: Annotated[
        bool, typer.Option("--per-user", help="Also look for each user's own scorer.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For each question; then 'undecided'.")
    ] = 60.0,
    policy: options.Policy = "raise",
    as_json: options.Json = False,
):
    """Which margin conditions hold for given scores, and which can any linear scorer realise?"""
    from structsvm_papk import margins as theory

    conditions = _conditions(condition)
    loaded = None if model is None else load_model(model)
    table = reading.table(data, loaded)
    lists = reading.lists(table)
    given = _given_scores(table, loaded, scores)
    lists = lists.usable(k, policy)
    options.say_columns(table)
    told = {"k": k, "delta": delta, "n_users": lists.n_users}
    if given is not None:
        groups = lists.users[lists.user_of_position]
        users, joint = theory.check_users(
            given[lists.rows], lists.labels.astype(int), groups, k, delta
        )
        told["scores"] = {
            "joint": joint.as_dict(),
            "users": {str(name): report.as_dict() for name, report in users.items()},
        }
    if search:
        told["shared"] = {c: _search(lists, k, c, time_limit).as_dict() for c in conditions}
    if search and per_user:
        told["per_user"] = {c: _count_users(lists, k, c, time_limit) for c in conditions}
    if as_json:
        console.print_json(told)
    else:
        _print_margins(told, conditions)


def _conditions(names):
    from structsvm_papk.margins import CONDITIONS

    names = list(names or CONDITIONS)
    for name in names:
        if name not in CONDITIONS:
            raise InputError(f"condition {name!r} is not one of {', '.join(CONDITIONS)}")
    return names


def _given_scores(table, model, path):
    """Scores of every row of the file, from a model or a file; None when neither was given."""
    if model is not None and path is not None:
        raise InputError("give --model or --scores, not both")
    if model is not None:
        return np.asarray(table.X @ model.coef)
    if path is None:
        return None
    try:
        lines = path.read_text().split()
        values = np.array([float(v) for v in lines])
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"cannot read scores from {path}: {error}") from None
    if values.size != table.X.shape[0]:
        raise InputError(f"{path} has {values.size} scores, the data {table.X.shape[0]} rows")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InputError(f"{path}, line {bad[0] + 1}: the score is {values[bad[0]]}")
    return values


def _search(lists, k, condition, time_limit):
    from structsvm_papk.margins import find_in_data

    return find_in_data(lists, k, condition, time_limit)


def _count_users(lists, k, condition, time_limit):
    counts = {"yes": 0, "no": 0, "undecided": 0}
    every = np.arange(lists.n_users)
    for u in every:
        counts[_search(lists.subset(every == u), k, condition, time_limit).answer] += 1
    return counts


def _print_margins(told, conditions):
    table = Table(
        title=f"Margin conditions, k = {told['k']}, {told['n_users']} users",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("condition")
    if "scores" in told:
        for name in (f"users with margin {told['delta']:g}", "all users", "largest margin"):
            table.add_column(name, justify="right")
    if "shared" in told:
        for name in ("some linear w", "margin", "at most", "norm", "certificate", "seconds"):
            table.add_column(name, justify="right")
    if "per_user" in told:
        table.add_column("users with their own w: yes / no / undecided", justify="right")
    for c in conditions:
        table.add_row(c, *_score_cells(told, c), *_search_cells(told, c), *_user_cells(told, c))
    console.print_table(table)
    for found in told.get("shared", {}).values():
        if found["note"]:
            console.note(f"{found['condition']}: {found['note']}", style="yellow")


def _score_cells(told, condition):
    if "scores" not in told:
        return []
    users, joint = told["scores"]["users"], told["scores"]["joint"]
    holding = sum(report[condition] for report in users.values())
    largest = joint[f"delta_{condition}"]
    return [
        f"{holding} of {len(users)}",
        "yes" if joint[condition] else "no",
        f"{largest:.6g}" if np.isfinite(largest) else "none",
    ]


def _search_cells(told, condition):
    if "shared" not in told:
        return []
    found = told["shared"][condition]
    proof = "exact" if found["exact"] else "numerical" if found["answer"] == "no" else "-"
    margin = f"{found['margin']:.6g}" if found["answer"] == "yes" else "-"
    bound = f"{found['margin_bound']:.6g}" if np.isfinite(found["margin_bound"]) else "-"
    return [found["answer"], margin, bound, found["norm"], proof, f"{found['seconds']:.1f}"]


def _user_cells(told, condition):
    if "per_user" not in told:
        return []
    counts = told["per_user"][condition]
    return [f"{counts['yes']} / {counts['no']} / {counts['undecided']}"]


# ----------------------------------------------------------------- bound


def bound(
    reading: options.Reading,
    data: Annotated[
        Path | None,
        typer.Argument(help="Held-out data with --model or --scores: an interval for that scorer."),
    ] = None,
    n_pos: Annotated[int | None, typer.Option(help="Positives.", rich_help_panel=_SIZES)] = None,
    n_neg: Annotated[int | None, typer.Option(help="Negatives.", rich_help_panel=_SIZES)] = None,
    k: Annotated[
        int | None, typer.Option("--k", help="Recommended items.", rich_help_panel=_SIZES)
    ] = None,
    n_features: Annotated[
        int | None, typer.Option(help="Linear scorers on R^p.", rich_help_panel=_SIZES)
    ] = None,
    vc_dim: Annotated[
        int | None,
        typer.Option(help="VC dimension of another class.", rich_help_panel=_SIZES),
    ] = None,
    rho: Annotated[float, typer.Option(help="Error probability, at most 1/2.")] = 0.05,
    form: Annotated[str, typer.Option(help="auto, c2 or k3.", rich_help_panel=_BOUND)] = "auto",
    one_sided: Annotated[
        bool, typer.Option("--one-sided", help="Upper bounds only.", rich_help_panel=_BOUND)
    ] = False,
    gamma: Annotated[
        str,
        typer.Option(help="empirical, or paper (not valid in general).", rich_help_panel=_BOUND),
    ] = "empirical",
    constant: Annotated[
        float | None, typer.Option(help="Another constant in c2 or k3.", rich_help_panel=_BOUND)
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="With data, one list: shift, dkw or asymptotic; several users: kl, hoeffding, "
            "bernstein or bootstrap.",
            rich_help_panel=_BOUND,
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(metavar="WIDTH", help="How many items and users for this half-width?"),
    ] = None,
    top_share: Annotated[
        float, typer.Option(help="With --target: k/n_neg.", rich_help_panel=_SIZES)
    ] = 0.05,
    pos_per_neg: Annotated[
        float, typer.Option(help="With --target: n_pos/n_neg.", rich_help_panel=_SIZES)
    ] = 0.25,
    model: Annotated[Path | None, typer.Option(metavar="FILE", help="Model file.")] = None,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Scores, one number per row.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the uniform bounds against k and n here."),
    ] = None,
    policy: options.Policy = "exclude",
    as_json: options.Json = False,
):
    """How far can the risk on a sample be from the population's? Uniform, held-out, or how many."""
    if target is not None:
        told = _how_many(target, top_share, pos_per_neg, rho, n_features, vc_dim)
    elif data is not None:
        told = _held_out(data, k, rho, method, model, scores, policy, reading)
    else:
        told = _uniform(
            n_pos, n_neg, k, n_features, vc_dim, rho, form, not one_sided, gamma, constant, plot
        )
    if as_json:
        console.print_json(told)
    else:
        _print_bound(told)


def _uniform(n_pos, n_neg, k, n_features, vc_dim, rho, form, two_sided, gamma, constant, plot):
    import warnings

    if None in (n_pos, n_neg, k):
        raise InputError("give --n-pos, --n-neg and --k; or a data file; or --target")
    if plot is not None:
        plots.check_plot(plot)
        options.check_outputs(plot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bounds.NotGuaranteedWarning)  # the note says it
        found = bounds.uniform(
            n_pos, n_neg, k, n_features, vc_dim, rho, form, two_sided, gamma, constant=constant
        )
    told = {"kind": "uniform", **found.as_dict()}
    if gamma == "paper":
        told["counterexamples"] = bounds.theorem2_counterexamples()
    if plot is not None:
        axes = bounds.plot_uniform(n_pos, n_neg, k, n_features, vc_dim, rho)
        plots.save_figure(axes[0].figure, plot)
        console.note(f"plot written to {plot}")
    return told


def _held_out(data, k, rho, method, model, scores, policy, reading):
    from structsvm_papk.propositions.optimising import list_risks

    if k is None:
        raise InputError("give --k, the number of recommended items")
    loaded = None if model is None else load_model(model)
    table = reading.table(data, loaded)
    given = _given_scores(table, loaded, scores)
    if given is None:
        raise InputError("an interval is for one scorer: give --model or --scores")
    lists = reading.lists(table).usable(k, policy)
    options.say_columns(table)
    given = given[lists.rows]
    if lists.n_users == 1:
        kind = "one list"
        risk = bounds.held_out(given, lists.labels.astype(int), k, rho, method or "shift")
    else:
        kind = "mean over users"
        risk = bounds.many_users(list_risks(lists, given, k), rho, method or "kl")
    fields = risk.as_dict()
    return {
        "kind": kind, "n_users": fields.pop("n_users"), "risk": fields.pop("value"), **fields,
    }  # fmt: skip


def _how_many(target, top_share, pos_per_neg, rho, n_features, vc_dim):
    """Items of one list for the bounds of lists, users for the bounds of means over users."""
    forms = ["dkw"]
    if n_features is not None or vc_dim is not None:
        forms = [*bounds.FORMS, "dkw"]
    items = {
        form: bounds.required_items(target, top_share, pos_per_neg, rho, form, n_features, vc_dim)
        for form in forms
    }
    users = {m: bounds.required_users(target, rho, m) for m in bounds.MANY_USERS[:3]}
    return {"kind": "how many", "target": target, "rho": rho, "items": items, "users": users}


def _print_bound(told):
    table = Table(header_style="bold", title_justify="left")
    if told["kind"] == "how many":
        table.title = f"Sizes for a half-width of {told['target']:g} at level {1 - told['rho']:g}"
        for name in ("bound", "n_pos", "n_neg", "k", "users"):
            table.add_column(name, justify="left" if name == "bound" else "right")
        for form, need in told["items"].items():
            kind = "one list, fixed scorer, " if form == "dkw" else "one list, all scorers, "
            table.add_row(kind + form, *(f"{need[n]:,}" for n in ("n_pos", "n_neg", "k")), "")
        for method, need in told["users"].items():
            table.add_row(f"mean over users, {method}", "", "", "", f"{need:,}")
    elif told["kind"] == "uniform":
        _uniform_rows(table, told)
    else:
        _interval_rows(table, told)
    console.print_table(table)
    for example in told.get("counterexamples", []):
        console.note(
            f"counterexample to “{example['claim']}”: {example['setting']}: population value "
            f"{example['population']:.4g}, empirical {example['empirical']:.4g} ({example['why']})",
            style="yellow",
        )


def _uniform_rows(table, told):
    table.title = "|R - R^| for all scorers at once" if told["two_sided"] else "R - R^, one-sided"
    table.add_column("quantity")
    table.add_column("value", justify="right")
    width = "vacuous: says nothing" if told["vacuous"] else f"{told['half_width']:.6g}"
    table.add_row("half-width", width)
    table.add_row("form", told["form"])
    table.add_row("a = share of positives", f"{told['gamma_pos']:.6g}")
    table.add_row("b = share of negatives", f"{told['gamma_neg']:.6g}")
    table.add_row("VC dimension", str(told["vc_dim"]))
    table.add_row("level", f"{1 - told['rho']:g}")
    table.add_row("guaranteed", "yes" if told["guaranteed"] else f"no: {told['note']}")


def _interval_rows(table, told):
    table.title = f"Population risk, {told['kind']}"
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_row("users", str(told["n_users"]))
    table.add_row("risk on this data", f"{told['risk']:.6g}")
    interval = f"{told['lower']:.6g} .. {told['upper']:.6g}"
    table.add_row("interval", "vacuous: says nothing" if told["vacuous"] else interval)
    table.add_row("level", f"{told['level']:g}")
    table.add_row("method", told["method"])
    table.add_row("guaranteed", "yes" if told["guaranteed"] else f"no: {told['note']}")
