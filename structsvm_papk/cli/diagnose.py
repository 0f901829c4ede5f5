"""``diagnose``: what a surrogate can say about a file, before any training."""

from collections.abc import Sequence
from itertools import product
from typing import Annotated

from structsvm_papk import diagnosis
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.reading import GradedReading, Problem, say_columns
from structsvm_papk.diagnosis.convex_test import Verdict
from structsvm_papk.diagnosis.zero_test import SURROGATES, CriticalDepth, Diagnosis
from structsvm_papk.errors import check_choice
from structsvm_papk.oracles import EmpiricalRisk
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all
from structsvm_papk.rankers.in_columns import TrainingColumns
from structsvm_papk.rankers.settings import DEPTH, Setting, as_depth

_WORDS = {
    Verdict.DEGENERATE: "optimal",
    Verdict.INFORMATIVE: "not optimal",
    Verdict.UNDECIDED: "undecided",
}


def diagnose(
    *,
    data: options.Data,
    k: Annotated[
        list[int],
        options.problem_option(
            "--k",
            help="Number of top places of a list (user or query) that count; repeat for more.",
        ),
    ],
    surrogate: Annotated[
        list[str] | None, options.problem_option(help="Only this surrogate; repeat for more.")
    ] = None,
    users: Annotated[
        int,
        options.problem_option(
            help="Also test this many lists alone, evenly spread; 0 for none.", metavar="N", min=0
        ),
    ] = 200,
    depth: options.Depth = DEPTH,
    pieces: options.Pieces = None,
    reading: GradedReading,
    as_json: options.Json = False,
) -> None:
    """Check whether w = 0, which ranks nothing, is the optimum of a surrogate.

    For all lists together, and for some alone. Also prints the smallest training depth at which
    w = 0 is not the optimum.
    """
    problem = Problem(depth=as_depth(depth, reading.missing), pieces=pieces)
    names = surrogate or SURROGATES
    for name in names:
        check_choice("--surrogate", name, SURROGATES)
    table = reading.table(data, dense=pieces is not None)
    lists = reading.lists(table)
    for shown in k:
        refuse_deeper_than_all(problem.surrogate(names[0], shown), lists.most_negatives)
    setting = Setting(problem.surrogate(names[0], k[0]), "equal", "auto", pieces)
    lists = TrainingColumns(lists, reading.missing, "auto").of(setting).lists
    with console.bar("diagnosing", total=2 * len(k) * len(names)) as update:
        answers = []
        depths = []
        for shown, name in product(k, names):
            risk = EmpiricalRisk(problem.surrogate(name, shown), lists, "cap")
            answers.append(diagnosis.diagnose(risk, users))
            update(advance=1)
            depths.append(diagnosis.critical_depth(risk))
            update(advance=1)
    say_columns(table, lists)
    parts = [
        answer.as_dict() | {"critical_depth": depth.as_dict()}
        for answer, depth in zip(answers, depths, strict=True)
    ]
    title = f"Is w = 0 optimal? ({problem.title()})"
    console.answer(as_json, problem.content | {"diagnoses": parts}, _show, title, answers, depths)


def _show(title: str, answers: Sequence[Diagnosis], depths: Sequence[CriticalDepth]) -> None:
    rows: list[tuple[str, ...] | None] = []
    k = answers[0].k
    for answer, depth in zip(answers, depths, strict=True):
        if answer.k != k:
            rows.append(None)
            k = answer.k
        verdict = answer.joint.verdict
        style = "yellow" if verdict is Verdict.DEGENERATE else "green"
        shares = [f"{answer.share(word):.0%}" if answer.users else "-" for word in _WORDS]
        rows.append(
            (
                str(answer.k),
                answer.surrogate,
                str(answer.n_users),
                f"[{style}]{_WORDS[verdict]}[/{style}]",
                _distance(answer),
                _depth(depth),
                *shares,
            )
        )
    columns = ("k", "surrogate", "lists", "for all lists", ">distance", ">critical depth")
    console.print_table(title, (*columns, ">alone: optimal", ">not", ">undecided"), rows)
    if any(answer.zero_is_optimal for answer in answers):
        console.note(
            "Where w = 0 is optimal, training returns it for every alpha: give --depth the "
            "critical depth or more, or try surrogate clipped_ramp, another k, or better features."
        )


def _distance(answer: Diagnosis) -> str:
    """The distance of 0 from the subdifferential, or how steeply a direction falls."""
    if answer.joint.verdict is Verdict.INFORMATIVE:
        return f"{answer.joint.lower_bound:.2e}"
    return "0" if answer.joint.verdict is Verdict.DEGENERATE else "-"


def _depth(answer: CriticalDepth) -> str:
    """From which depth on zero is not optimal; ``<=`` where a smaller one is left undecided."""
    if answer.informative_from is None:
        return f"none of {answer.deepest}"
    bound = "" if answer.is_exact else "<= "
    return f"{bound}{answer.informative_from} of {answer.deepest}"
