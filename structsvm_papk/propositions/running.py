"""Run the checks, in parallel and seeded, and describe what was found."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk._workers import workers
from structsvm_papk.errors import InputError
from structsvm_papk.propositions.claims import CLAIMS, Claim
from structsvm_papk.propositions.lists import Batch
from structsvm_papk.propositions.optimising import (
    OPTIMUM_CLAIMS,
    OptimumClaim,
    OptimumOutcome,
    search_optima,
)
from structsvm_papk.propositions.search import Effort, Outcome, search

ALL_IDS = (*CLAIMS, *OPTIMUM_CLAIMS)
EFFORTS = {
    "quick": (Effort(n_random=40, n_steps=8, n_climbers=8, largest=4), (1, 25)),
    "normal": (Effort(n_random=250, n_steps=30, n_climbers=24), (4, 70)),
    "thorough": (Effort(n_random=2000, n_steps=150, n_climbers=64), (20, 1000)),
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
        All when not given.
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
    ids = list(ALL_IDS if ids is None else ids)
    unknown = [name for name in ids if name not in ALL_IDS]
    if unknown:
        raise InputError(f"unknown check {unknown[0]!r}; there are: {', '.join(ALL_IDS)}")
    if effort not in EFFORTS:
        raise InputError(f"effort {effort!r} is not one of {', '.join(EFFORTS)}")
    done = {}
    for check in _results(ids, seed, effort, n_jobs):
        done[check.id] = check
        if progress is not None:
            progress(check)
    return [done[name] for name in ids]


def _results(ids: list[str], seed: int, effort: str, n_jobs: int) -> Iterator[Check]:
    if n_jobs == 1 or len(ids) < 2:
        yield from (run_check(name, seed, effort) for name in ids)
        return
    # the slow checks first, so that no process idles at the end
    order = sorted(ids, key=lambda name: name not in OPTIMUM_CLAIMS)
    with workers(min(n_jobs, len(ids))) as pool:
        for future in as_completed([pool.submit(run_check, n, seed, effort) for n in order]):
            yield future.result()


def run_check(name: str, seed: int = 0, effort: str = "normal") -> Check:
    """Run one check."""
    start = time.perf_counter()
    own = np.random.SeedSequence([seed, zlib.crc32(name.encode())]).generate_state(2).tolist()
    run = _run_claim if name in CLAIMS else _run_optimum
    fields = run(name, own, effort)
    return Check(id=name, seconds=time.perf_counter() - start, **fields)


def _run_claim(name: str, seeds: list[int], effort: str) -> dict[str, Any]:
    claim, level = CLAIMS[name], EFFORTS[effort][0]
    outcome = search(claim.statement, seeds[0], level)
    control = search(claim.control, seeds[1], level)
    drawn = outcome.drawn
    return _words(claim) | {
        "verdict": _verdict(outcome),
        "instances": outcome.instances,
        "drawn": f"{drawn['random']} random lists, {drawn['lattice']} on tie-rich lattices, "
        f"{drawn['climbing']} by climbing towards a violation; "
        f"{sum(map(level.allows, claim.statement.shapes))} shapes, with n_pos = 1 and k = n_neg",
        "worst": outcome.worst,
        "counterexample": _described(outcome.example, claim.quantities),
        "control": claim.control_words,
        "control_verdict": _verdict(control),
        "control_counterexample": _described(control.example, claim.quantities),
    }


def _run_optimum(name: str, seeds: list[int], effort: str) -> dict[str, Any]:
    claim, (n_large, n_small) = OPTIMUM_CLAIMS[name], EFFORTS[effort][1]
    outcome = search_optima(claim.surrogate, claim.condition, seeds[0] % 10**6, n_large, n_small)
    control = search_optima(
        claim.control_surrogate, claim.control_condition, seeds[1] % 10**6, n_large, n_small
    )
    return _words(claim) | {
        "verdict": _verdict(outcome),
        "instances": outcome.instances,
        "drawn": f"{outcome.instances} data sets solved to a certified optimum, "
        f"{max(0, outcome.n_bad)} with positive risk",
        "worst": outcome.worst,
        "counterexample": _plain(outcome.example),
        "control": claim.control_words,
        "control_verdict": _verdict(control),
        "control_counterexample": _plain(control.example),
    }


def _words(claim: Claim | OptimumClaim) -> dict[str, str]:
    return {
        field: getattr(claim, field)
        for field in ("title", "claim", "formula", "source", "hypothesis")
    }


def _verdict(outcome: Outcome | OptimumOutcome) -> str:
    return "counterexample" if outcome.violated else "holds"


def _plain(example: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if example is None else {k: v for k, v in example.items() if k != "size"}


def _described(example: Batch | None, quantities: Sequence[str]) -> dict[str, Any] | None:
    """One instance with the values that the claim is about, one per list."""
    if example is None:
        return None
    margins = {f"delta_{name}": v for name, v in example.margins().items()}
    values = {}
    for name in quantities:
        measured = margins[name] if name in margins else _value(example, name)
        values[name] = (
            [float(v) for v in measured[0]] if measured.shape[1] > 1 else float(measured[0, 0])
        )
    if example.shape.n_lists > 1:
        middle = type(example)(
            example.p.mean(axis=1, keepdims=True),
            example.q.mean(axis=1, keepdims=True),
            example.shape,
        )
        for name in quantities:
            values[f"{name} at the midpoint"] = float(_value(middle, name)[0, 0])
    return example.as_dict() | {"values": values}


def _value(batch: Batch, name: str) -> Array:
    return batch.risk() if name == "risk" else batch.surrogate(name)
