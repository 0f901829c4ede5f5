"""Run the checks, in parallel and seeded, and describe what was found."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from math import isfinite
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from structsvm_papk.errors import InputError, as_names, check_callback, check_choice, check_number
from structsvm_papk.plots.page import filled
from structsvm_papk.propositions import claims, depth, descending, optimising
from structsvm_papk.propositions.search import Effort, Found, Words

_GROUPS = claims.CLAIMS, descending.CLAIMS, depth.CLAIMS, optimising.CLAIMS
CLAIMS = {claim.id: claim for group in _GROUPS for claim in group}
ALL_IDS = tuple(CLAIMS)
EFFORTS = {
    "quick": Effort(n_random=40, n_steps=8, n_climbers=8, largest=4, n_data=(1, 25)),
    "normal": Effort(n_random=250, n_steps=30, n_climbers=24, n_data=(4, 70)),
    "thorough": Effort(n_random=2000, n_steps=150, n_climbers=64, n_data=(20, 1000)),
}


@dataclass(frozen=True, kw_only=True)
class Check(Found, Words):
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
        return asdict(self) | {"verdict": self.verdict, "control_works": self.control_works}


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
        All when not given; `depth`, `prop5` and so on stand for all that begin so.
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
    # the slow checks first, so that no process idles at the end
    order = sorted(ids, key=lambda name: not name.startswith("optimum"))
    search = delayed(run_check)
    parallel = Parallel(min(n_jobs, max(len(order), 1)), return_as="generator_unordered")
    done = {}
    for check in parallel(search(name, seed, effort) for name in order):
        done[check.id] = check
        if progress is not None:
            progress(check)
    return [done[name] for name in ids]


def _nearest_names(name: str) -> str:
    """What somebody who wrote `name` may have meant, a check or a group, or what groups exist."""
    groups = list(dict.fromkeys(i.partition("-")[0] for i in ALL_IDS))
    near = get_close_matches(name.lower(), groups) or get_close_matches(name.lower(), ALL_IDS)
    return f"did you mean {' or '.join(near)}?" if near else f"the groups are {', '.join(groups)}"


def expanded(names: Iterable[str]) -> list[str]:
    """The ids of checks and of groups of them, each once."""
    ids: dict[str, None] = {}
    for name in names:
        meant = [i for i in ALL_IDS if i == name or i.startswith(f"{name}-")]
        if not meant:
            raise InputError(f"unknown check {name!r}; {_nearest_names(name)}")
        ids |= dict.fromkeys([name] if name in ALL_IDS else meant)
    return list(ids)


def run_check(name: str, seed: int = 0, effort: str = "normal") -> Check:
    """Run one check."""
    start = time.perf_counter()
    seeds = np.random.SeedSequence([seed, zlib.crc32(name.encode())]).generate_state(2).tolist()
    claim = CLAIMS[name]
    level = EFFORTS[effort]
    found = claim.statement.search(seeds[0], level, claim.quantities)
    control = claim.control.search(seeds[1], level, claim.quantities)
    return Check(
        **{field.name: getattr(claim, field.name) for field in fields(Words)},
        instances=found.instances,
        drawn=found.drawn,
        worst=found.worst,
        counterexample=found.counterexample,
        control=claim.control_words,
        control_verdict=control.verdict,
        control_counterexample=control.counterexample,
        seconds=time.perf_counter() - start,
    )


def render(checks: Sequence[Check], seed: int, effort: str) -> str:
    """The checks as one self-contained HTML page."""
    values = {
        "title": "pAp@k: which claims hold", "checks": checks, "seed": seed, "effort": effort,
        "published": [check for check in checks if check.source.startswith(claims.PAPER)],
    }  # fmt: skip
    filters: dict[str, Callable[..., object]] = {
        "short": _short, "points": _points, "ranked_items": _ranked_items,
    }  # fmt: skip
    return filled("propositions/report.html", values, filters)


def _points(rows: Sequence[Sequence[float]], digits: str = "%g") -> str:
    return ", ".join("(" + ", ".join(digits % v for v in row) + ")" for row in rows)


def _ranked_items(one: dict[str, list[float]], k: int) -> list[dict[str, Any]]:
    """Items from the highest score down, negatives first among ties, which are errors.

    They keep the number they have in their list: the lists of a pair have the same items.
    """
    items: list[dict[str, Any]] = [
        {"score": score, "side": side, "number": number}
        for side, name in (("neg", "negatives"), ("pos", "positives"))
        for number, score in enumerate(one[name], start=1)
    ]
    items.sort(key=lambda item: (-item["score"], item["side"] == "pos"))
    left = {"pos": min(len(one["positives"]), k), "neg": k}
    for item in items:
        left[item["side"]] -= 1
        item["counted"] = left[item["side"]] >= 0
    return items


def _short(value: float | list[float]) -> str:
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    if not isfinite(value):
        return "none" if value < 0 else "infinite"
    return f"{value:.4g}".replace("-", "−")
