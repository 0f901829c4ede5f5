"""``diagnose``: what a surrogate can say about a file, before any training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.cli._shared.options import PROBLEM
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.diagnosis import CriticalDepth, Diagnosis, critical_depth
from structsvm_papk.diagnosis.convex_test import Verdict
from structsvm_papk.diagnosis.zero_test import SURROGATES, diagnose_over_k
from structsvm_papk.errors import InputError
from structsvm_papk.oracles import EmpiricalRisk
from structsvm_papk.plots.degeneracy import degeneracy_figure
from structsvm_papk.rankers.settings import refuse_deeper_than_all
from structsvm_papk.surrogates import make_surrogate

_WORDS = {
    Verdict.DEGENERATE: "optimal",
    Verdict.INFORMATIVE: "not optimal",
    Verdict.UNDECIDED: "undecided",
}


@dataclass(frozen=True)
class Problem:
    """What is asked."""

    k: list[int] | None = PROBLEM(None, f"{options.SHOWN} Repeat for more.", flags="--k")
    surrogate: list[str] | None = PROBLEM(None, "Only this one; repeat for more.")
    users: int = PROBLEM(
        200, "Also test so many users alone, evenly spread; 0 for none.", min=0, metavar="N"
    )

    def checked(self, plot: Path | None) -> Sequence[str]:
        """The surrogates, where all that is asked can be answered."""
        if not self.k:
            raise InputError("give --k, the number of items that a user is shown; repeat for more")
        unknown = [name for name in self.surrogate or () if name not in SURROGATES]
        if unknown:
            raise InputError(f"no diagnosis of {unknown[0]!r}: choose from {', '.join(SURROGATES)}")
        options.check_plot(plot)
        if plot is not None and not self.users:
            raise InputError("--plot shows the users' verdicts: --users has to be above 0")
        return self.surrogate or SURROGATES


def diagnose(
    data: options.DataFile,
    problem: Problem,
    weighting: options.Weighting,
    reading: options.Reading,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Is w = 0 optimal, so that a surrogate says nothing?

    For all users jointly, and for some alone; and from which training depth on it is not.
    """
    names = problem.checked(plot)
    ks = problem.k or []
    table = reading.table(data)
    lists = reading.lists(table)
    for k in ks:
        refuse_deeper_than_all(weighting.surrogate(names[0], k), lists.most_negatives)
    lists = weighting.lists(lists, weighting.surrogate(names[0], ks[0]))
    with progress.bar("diagnosing", total=2 * len(ks) * len(names)) as update:
        answers = diagnose_over_k(
            lists,
            ks,
            names,
            problem.users,
            lambda one: update(advance=1),
            weighting.negatives,
        )
        depths = []
        for one in answers:
            depths.append(_critical_depth(one, lists))
            update(advance=1)
    options.say_columns(table)
    options.save_plot(plot, lambda: degeneracy_figure(answers))
    parts = [
        one.as_dict() | {"critical_depth": depth.as_dict()}
        for one, depth in zip(answers, depths, strict=True)
    ]
    title = f"Is w = 0 optimal? ({options.problem_text(*weighting.content.values())})"
    console.answer(as_json, weighting.content | {"diagnoses": parts}, _show, title, answers, depths)


def _critical_depth(one: Diagnosis, lists: RankingData) -> CriticalDepth:
    return critical_depth(EmpiricalRisk(make_surrogate(one.surrogate, one.k), lists))


def _show(title: str, answers: Sequence[Diagnosis], depths: Sequence[CriticalDepth]) -> None:
    rows: list[tuple[str, ...] | None] = []
    for before, one, depth in zip([None, *answers], answers, depths, strict=False):
        if before and before.k != one.k:
            rows.append(None)
        verdict = one.joint.verdict
        style = "yellow" if verdict is Verdict.DEGENERATE else "green"
        shares = [f"{one.share(v):.0%}" if one.users else "-" for v in _WORDS]
        answer = f"[{style}]{_WORDS[verdict]}[/{style}]"
        cells = (str(one.k), one.surrogate, str(one.n_users), answer, _distance(one))
        rows.append((*cells, _depth(depth), *shares))
    columns = ("k", "surrogate", "users", "for all users", ">distance", ">critical depth")
    console.print_table(title, (*columns, ">alone: optimal", ">not", ">undecided"), rows)
    if any(one.zero_is_optimal for one in answers):
        console.note(
            "Where w = 0 is optimal, training returns it for every alpha: give --depth the "
            "critical depth or more, or try surrogate clipped_ramp, another k, or better features."
        )


def _distance(one: Diagnosis) -> str:
    """The distance of 0 from the subdifferential, or how steeply a direction falls."""
    if one.joint.verdict is Verdict.INFORMATIVE:
        return f"{one.joint.lower_bound:.2e}"
    return "0" if one.joint.verdict is Verdict.DEGENERATE else "-"


def _depth(answer: CriticalDepth) -> str:
    """From which depth on zero is not optimal; ``<=`` where a smaller one is left undecided."""
    if answer.informative_from is None:
        return f"none of {answer.deepest}"
    return f"{'' if answer.is_exact else '<= '}{answer.informative_from} of {answer.deepest}"
