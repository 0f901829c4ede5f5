"""Run the checks, in parallel and seeded, and describe what was found."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from structsvm_papk.errors import InputError, as_names, check_callback, check_choice, check_number
from structsvm_papk.propositions import claims, depth, ndcg, optimising, targets
from structsvm_papk.propositions._workers import workers
from structsvm_papk.propositions.search import Effort, Found

_GROUPS = claims.CLAIMS, depth.CLAIMS, ndcg.CLAIMS, optimising.CLAIMS, targets.CLAIMS
CLAIMS = {claim.id: claim for group in _GROUPS for claim in group}
ALL_IDS = tuple(CLAIMS)
EFFORTS = {
    "quick": Effort(n_random=40, n_steps=8, n_climbers=8, largest=4, n_data=(1, 25)),
    "normal": Effort(n_random=250, n_steps=30, n_climbers=24, n_data=(4, 70)),
    "thorough": Effort(n_random=2000, n_steps=150, n_climbers=64, n_data=(20, 1000)),
}


@dataclass(frozen=True)
class Check:
    """A claim, what was tried, and the verdict.

    Attributes
    ----------
    id, title, claim, formula, source, hypothesis : str
    verdict : {"holds", "counterexample"}
        "holds" means: on all instances tried.
    instances : int
    drawn : str
        How the instances were drawn, with counts.
    worst : float
        Largest violation seen; rounding when the claim holds.
    counterexample : dict or None
        ``k``, ``lists`` of positives and negatives, ``values`` there.
    control : str
        The variant whose verdict must be the opposite.
    control_verdict : str
    control_counterexample : dict or None
    seconds : float
    """

    id: str
    title: str
    claim: str
    formula: str
    source: str
    hypothesis: str
    verdict: str
    instances: int
    drawn: str
    worst: float
    counterexample: dict[str, Any] | None
    control: str
    control_verdict: str
    control_counterexample: dict[str, Any] | None
    seconds: float

    @property
    def control_works(self) -> bool:
        """True when the control has the opposite verdict."""
        return self.control_verdict != self.verdict

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values."""
        return asdict(self) | {"control_works": self.control_works}


def verify(
    ids: Iterable[str] | None = None,
    seed: int = 0,
    effort: str = "normal",
    n_jobs: int = 1,
    progress: Callable[[Check], object] | None = None,
) -> list[Check]:
    """Run checks.

    Parameters
    ----------
    ids : iterable of str, optional
        All when not given; `ndcg`, `depth`, `prop5` and so on stand for all that begin so.
    seed : int
        Each check has its own stream, from the seed and its id: the result depends neither on the
        order nor on `n_jobs`.
    effort : {"quick", "normal", "thorough"}
    n_jobs : int
        Processes.
    progress : callable, optional
        Called with each finished Check.

    Returns
    -------
    list of Check
        In the order of `ids`.

    Raises
    ------
    InputError
        Unknown ids or effort.
    """
    ids = ALL_IDS if ids is None else expanded(as_names("ids", ids, str))
    check_choice("effort", effort, EFFORTS)
    check_number("seed", seed, least=0)
    check_number("n_jobs", n_jobs, least=1)
    check_callback(progress, "progress")
    done = {}
    for check in _results(ids, seed, effort, n_jobs):
        done[check.id] = check
        if progress is not None:
            progress(check)
    return [done[name] for name in ids]


def expanded(names: Iterable[str]) -> list[str]:
    """The ids of checks and of groups of them, each once."""
    ids: dict[str, None] = {}
    for name in names:
        meant = [i for i in ALL_IDS if i == name or i.startswith(f"{name}-")]
        if not meant:
            raise InputError(f"unknown check {name!r}; there are: {', '.join(ALL_IDS)}")
        ids |= dict.fromkeys([name] if name in ALL_IDS else meant)
    return list(ids)


def _results(ids: Sequence[str], seed: int, effort: str, n_jobs: int) -> Iterator[Check]:
    if n_jobs == 1 or len(ids) < 2:
        yield from (run_check(name, seed, effort) for name in ids)
        return
    # the slow checks first, so that no process idles at the end
    order = sorted(ids, key=lambda name: not name.startswith("optimum"))
    with workers(min(n_jobs, len(ids))) as pool:
        for future in as_completed([pool.submit(run_check, n, seed, effort) for n in order]):
            yield future.result()


def run_check(name: str, seed: int = 0, effort: str = "normal") -> Check:
    """Run one check."""
    start = time.perf_counter()
    own = np.random.SeedSequence([seed, zlib.crc32(name.encode())]).generate_state(2).tolist()
    claim, level = CLAIMS[name], EFFORTS[effort]
    outcome, control = claim.statement.search(own[0], level), claim.control.search(own[1], level)
    words = ("title", "claim", "formula", "source", "hypothesis")
    return Check(
        id=name,
        **{field: getattr(claim, field) for field in words},
        verdict=_verdict(outcome),
        instances=outcome.instances,
        drawn=outcome.drawn_words(),
        worst=outcome.worst,
        counterexample=outcome.described(claim.quantities),
        control=claim.control_words,
        control_verdict=_verdict(control),
        control_counterexample=control.described(claim.quantities),
        seconds=time.perf_counter() - start,
    )


def _verdict(outcome: Found) -> str:
    return "counterexample" if outcome.violated else "holds"
