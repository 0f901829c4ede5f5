"""The checks as one self-contained HTML page: no scripts, no outside resources.

Counterexamples are drawn as ranked lists and as points on a line; everything is inline.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite, log10
from typing import Any

from structsvm_papk.files.pages import filled
from structsvm_papk.propositions.lists import TOL
from structsvm_papk.propositions.running import Check


def render(
    checks: Sequence[Check], seed: int, effort: str, regimes: Sequence[dict[str, Any]] = ()
) -> str:
    """Return the page, with a table of `propositions.regimes` where there are some."""
    values = {
        "title": "pAp@k: which claims hold", "checks": checks, "seed": seed, "effort": effort,
        "regimes": regimes, "rounding": TOL,
    }  # fmt: skip
    filters: dict[str, Callable[..., object]] = {
        "short": _short, "violation": _violation, "percent": _percent, "points": _points,
        "line": _line, "ranked_items": _ranked_items,
    }  # fmt: skip
    return filled("propositions/report.html", values, filters)


def _percent(violation: float, low: float = -17.0, high: float = 5.0) -> str:
    """Place on the logarithmic track; zero and less at the left end."""
    power = log10(violation) if 0 < violation < inf else low
    return f"{100 * (min(max(power, low), high) - low) / (high - low):.1f}%"


def _points(rows: Sequence[Sequence[float]], digits: str = "%g") -> str:
    return ", ".join("(" + ", ".join(digits % v for v in row) + ")" for row in rows)


def _ranked_items(one: dict[str, list[float]], k: int) -> list[dict[str, Any]]:
    """Items from the highest score down; ties put the negative first, since they are errors.

    Items keep the number they have in their list: the lists of a pair have the same items.
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


def _line(one: dict[str, list[float]]) -> dict[str, Any]:
    """Scores on a line: positives above it, negatives below, equal scores stacked."""
    scores = one["positives"] + one["negatives"]
    low, high = min(scores), max(scores)
    span = (high - low) or 1.0
    dots = []
    for name, side, sign in (("positives", "pos", -1), ("negatives", "neg", 1)):
        stacked: dict[int, int] = {}
        for score in one[name]:
            x = round(20 + (score - low) / span * 280)
            stacked[x] = stacked.get(x, 0) + 1
            y = 46 + sign * (8 + 11 * (min(stacked[x], 3) - 1))
            dots.append({"x": x, "y": y, "side": side})
    return {"dots": dots, "lowest": low, "highest": high}


def _short(value: float | list[float]) -> str:
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    if not isfinite(value):
        return "none" if value < 0 else "infinite"
    return f"{value:.4g}".replace("-", "−")


def _violation(value: float) -> str:
    if not isfinite(value):
        return "–"
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 or abs(value) >= 1e4 else f"{value:.4g}"
