"""``margins``: which margin conditions hold, and which can hold."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.reading import Reading, say_columns
from structsvm_papk.cli._shared.scores import scores_of
from structsvm_papk.data.columns.checks import SEPARATE
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.roles import listed
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.files.model import load_model
from structsvm_papk.files.tables import Table
from structsvm_papk.margins.conditions import CONDITIONS, check_users, find_each

DELTA = 1.0  # the margin that scores are checked for, as in the paper


def margins(
    *,
    data: options.Data,
    k: options.K,
    model: options.ModelFile = None,
    reading: Reading,
    condition: Annotated[
        list[str] | None,
        options.problem_option(
            help="weak, beta, moderate or strong; repeat for more. By default all."
        ),
    ] = None,
    search: Annotated[
        bool, options.problem_option(help="Search for linear scorers that meet the conditions.")
    ] = True,
    per_user: Annotated[
        bool,
        options.problem_option("--per-user", help="Also search for a scorer of each list alone."),
    ] = False,
    time_limit: Annotated[
        float,
        options.problem_option(
            help="Time limit of each search; after it the answer is 'undecided'.", metavar="SECONDS"
        ),
    ] = 60.0,
    policy: Annotated[
        str,
        options.reading_option(
            help="Lists without a positive, or with fewer negatives than k: raise makes them an "
            "error; exclude leaves them out; cap uses the negatives there are, and leaves out "
            "lists without a positive or without a negative.",
            metavar="POLICY",
        ),
    ] = "raise",
    as_json: options.Json = False,
) -> None:
    """Check which margin conditions hold for scores, and for any linear scorer."""
    conditions = condition or list(CONDITIONS)
    for name in conditions:
        check_choice("--condition", name, CONDITIONS)
    scorer = None
    if model is not None:
        scorer = load_model(model)
    missing = SEPARATE if scorer is None else scorer.missing
    table = reading.table(data, scorer, missing=missing)
    lists = reading.lists(table)
    if search:
        _refuse_what_is_no_number(table)
    all_scores = None
    if scorer is not None:
        all_scores = scores_of(scorer, table, reading.one_list)
    lists = lists.usable(k, policy)
    say_columns(table)
    answers: dict[str, Any] = {"k": k, "delta": DELTA, "n_users": lists.n_users}
    if all_scores is not None:
        answers["scores"] = _check(lists, all_scores[lists.rows], k)
    if search:
        shared = find_each(lists, k, conditions, time_limit)
        answers["shared"] = {name: shared[name].as_dict() for name in conditions}
    if search and per_user:
        answers["per_user"] = _count_users(lists, k, conditions, time_limit)
    console.answer(as_json, answers, _show, answers, conditions)


def _refuse_what_is_no_number(table: Table) -> None:
    """Refuse text and missing values, of which a linear scorer makes no score."""
    names = table.feature_names or ()
    columns = [
        name for j, name in enumerate(names) if j in table.levels or np.isnan(table.X[:, j]).any()
    ]
    if columns:
        raise InputError(
            f"{table.source}: linear scorers need numbers, and column {listed(columns)} holds text "
            "or missing values: leave it out with --ignore, or with --model check the scores alone "
            "by --no-search"
        )


def _check(lists: RankingData, scores: Array, k: int) -> dict[str, Any]:
    """Which conditions hold for given scores, of all users and of each."""
    groups = lists.users[lists.user_of_position]
    users, joint = check_users(scores, lists.labels.astype(int), groups, k, DELTA)
    by_name = {str(name): report.as_dict() for name, report in users.items()}
    return {"joint": joint.as_dict(), "users": by_name}


def _count_users(
    lists: RankingData, k: int, conditions: Sequence[str], time_limit: float
) -> dict[str, dict[str, int]]:
    """How many users have a scorer of their own, by condition and answer."""
    users = np.arange(lists.n_users)
    counts = {name: dict.fromkeys(("yes", "no", "undecided"), 0) for name in conditions}
    for u in users:
        list_of_user = lists.subset(users == u)
        for name, found in find_each(list_of_user, k, conditions, time_limit).items():
            counts[name][found.answer] += 1
    return counts


def _show(answers: dict[str, Any], conditions: Sequence[str]) -> None:
    columns = ["condition"]
    if "scores" in answers:
        columns += [f">users with margin {answers['delta']:g}", ">all users", ">largest margin"]
    if "shared" in answers:
        columns += [">some linear w", ">margin", ">at most", ">norm", ">certificate", ">seconds"]
    if "per_user" in answers:
        columns.append(">users with their own w: yes / no / undecided")
    rows = []
    for condition in conditions:
        cells = [condition]
        if "scores" in answers:
            cells += _score_cells(answers["scores"], condition)
        if "shared" in answers:
            cells += _search_cells(answers["shared"], condition)
        if "per_user" in answers:
            cells.append(" / ".join(map(str, answers["per_user"][condition].values())))
        rows.append(cells)
    title = f"Margin conditions, k = {answers['k']}, {answers['n_users']} users"
    console.print_table(title, columns, rows)
    for answer in answers.get("shared", {}).values():
        if answer["note"]:
            console.warn(f"{answer['condition']}: {answer['note']}")


def _score_cells(scores: dict[str, Any], condition: str) -> list[str]:
    users = scores["users"]
    joint = scores["joint"]
    largest = joint[f"delta_{condition}"]
    return [
        f"{sum(report[condition] for report in users.values())} of {len(users)}",
        "yes" if joint[condition] else "no",
        f"{largest:.6g}" if np.isfinite(largest) else "none",
    ]


def _search_cells(shared: dict[str, Any], condition: str) -> list[str]:
    answer = shared[condition]
    certificate = "-"
    if answer["exact"]:
        certificate = "exact"
    elif answer["answer"] == "no":
        certificate = "numerical"
    margin = f"{answer['margin']:.6g}" if answer["answer"] == "yes" else "-"
    bound = f"{answer['margin_bound']:.6g}" if np.isfinite(answer["margin_bound"]) else "-"
    seconds = f"{answer['seconds']:.1f}"
    return [answer["answer"], margin, bound, answer["norm"], certificate, seconds]
