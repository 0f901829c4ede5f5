"""Metric names such as `pap@10`, and the rules on which libraries differ, each an explicit choice.

Presets name whole sets of rules. Ties between a positive and a negative (`ties`):

========== ===========================================================================
loss       a tied pair is an error; negatives stand before positives (Def. 1 of the paper)
win        a tied pair is a success; positives stand before negatives (RecTools on scores)
half       a tied pair counts one half; rank metrics take the mean over the orders of a block
threshold  as `half`, but average precision treats a tied block as one threshold (scikit-learn)
trec_eval  scores in single precision, then the item's text, both descending (needs items)
========== ===========================================================================
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from structsvm_papk.errors import InputError, check_choice, check_number
from structsvm_papk.metrics import _kernels

TIES = {
    "loss": _kernels.LOSS,
    "half": _kernels.HALF,
    "win": _kernels.WIN,
    "threshold": _kernels.THRESHOLD,
    "trec_eval": _kernels.LOSS,  # of which none are left by then
}
FEW_NEGATIVES = {
    "exclude": _kernels.EXCLUDE,
    "raise": _kernels.EXCLUDE,
    "normalise": _kernels.NORMALISE,
    "as_wins": _kernels.AS_WINS,
}
NO_POSITIVES = ("exclude", "zero", "one", "nan", "raise")
_CHOICES = {
    "ties": tuple(TIES),
    "few_negatives": tuple(FEW_NEGATIVES),
    "no_positives": NO_POSITIVES,
    "auc_no_positives": NO_POSITIVES,
    "ideal": ("achievable", "all_places"),
    "mean": ("user", "positives", "pairs", "pooled"),
    "insufficient_handling": ("ignore", "exclude", "raise"),
    "population": ("raise", "listed", "judged", "both", "either"),
}


@dataclass(frozen=True)
class Conventions:
    """What happens where the textbook formula leaves a choice.

    Parameters
    ----------
    ties : {"loss", "half", "win", "threshold", "trec_eval"}
        Equal scores, see the module's table.
    few_negatives : {"exclude", "raise", "normalise", "as_wins"}
        pAp@k and pAUC(0, k/n_neg] of a user with fewer than k negatives: leave the user out,
        raise, divide by the pairs that exist, or count each missing negative as ranked below.
    no_positives : {"exclude", "zero", "one", "nan", "raise"}
        A user without positives: left out of the mean, given a value, NaN (which makes the mean
        NaN), or an error.
    auc_no_positives : same values
        The same for `auc` and `auc@k`.
    ideal : {"achievable", "all_places"}
        What NDCG@k divides by: the best order of the user's own items, or k hits even where a
        user has fewer positives (RecTools).
    mean : {"user", "positives", "pairs", "pooled"}
        Equal weight per user (the paper calls it Micro), weight n_pos, weight n_pos * n_neg, or
        the metric of all rows as one list.
    insufficient_handling : {"ignore", "exclude", "raise"}
        A truncated list too short to decide pAp@k or pAUC@k: take what is there (understates),
        leave the user out, or raise.
    population : {"raise", "listed", "judged", "both", "either"}
        Whose lists count beside all relevant pairs: `listed`, every user with a list; `judged`,
        every user with a pair, without a list all relevant items are missed (trec_eval -c);
        `both`, those with a list and a pair (trec_eval); `either`; `raise`: as `listed`, but a
        user with relevant items and no list is an error.
    relevance_threshold : float, optional
        Grades of at least this are relevant, unless `evaluate` is told another threshold.
    """

    ties: str = "loss"
    few_negatives: str = "exclude"
    no_positives: str = "exclude"
    auc_no_positives: str = "exclude"
    ideal: str = "achievable"
    mean: str = "user"
    insufficient_handling: str = "ignore"
    population: str = "raise"
    relevance_threshold: float | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        check_number("relevance_threshold", self.relevance_threshold, optional=True)

    def __str__(self) -> str:
        unsaid = {"population": "raise", "relevance_threshold": None}  # where they play no part
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{n}={v}" for n, v in values.items() if n not in unsaid or v != unsaid[n])


PRESETS = {
    "icml2020": Conventions(),
    "icml2020-code": Conventions(ties="half"),
    "rectools": Conventions(ties="win", few_negatives="as_wins", ideal="all_places"),
    "sklearn": Conventions(ties="threshold", no_positives="zero"),
    "catalogue": Conventions(few_negatives="as_wins"),
    "trec_eval": Conventions(
        ties="trec_eval",
        few_negatives="as_wins",
        no_positives="zero",
        auc_no_positives="zero",
        population="both",
        relevance_threshold=1.0,
    ),
}


def resolve(
    preset: str | Conventions | None, beside_pairs: bool = False, **choices: str | None
) -> Conventions:
    """Conventions of a preset with the choices that are not None put over it.

    `preset` is a name of `PRESETS` or a `Conventions`; None: `icml2020`, and `catalogue` for lists
    beside all relevant pairs. A choice of `no_positives` applies to the AUC as well, unless
    `auc_no_positives` is given.
    """
    if preset is None:
        preset = "catalogue" if beside_pairs else "icml2020"
    if not isinstance(preset, Conventions):
        check_choice("preset", preset, PRESETS)
        preset = PRESETS[preset]
    given: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
    if "no_positives" in given:
        given.setdefault("auc_no_positives", given["no_positives"])
    return replace(preset, **given)


_NEVER, _OPTIONAL, _NEEDED = range(3)
_LARGEST_K = 10**9
_KINDS = {
    "pap": (_kernels.PAP, _NEEDED),
    "pauc": (_kernels.PAUC, _NEEDED),
    "auc": (_kernels.AUC, _OPTIONAL),
    "auroc": (_kernels.AUC, _OPTIONAL),
    "precision": (_kernels.PRECISION, _NEEDED),
    "recall": (_kernels.RECALL, _NEEDED),
    "ap": (_kernels.AP, _NEVER),
    "auprc": (_kernels.AP, _NEVER),
    "ndcg": (_kernels.NDCG, _OPTIONAL),
    "rr": (_kernels.RR, _NEVER),
    "hit": (_kernels.HIT, _NEEDED),
}
KNOWN = (
    "pap@k", "pauc@k", "auc", "precision@k", "recall@k", "hit@k", "ap", "ndcg@k", "ndcg", "rr",
    "auc@k", "auroc (auc)", "auprc (ap)",
)  # fmt: skip
_MEANINGS = {
    _kernels.PAP: "Share of pairs in the right order, of a user's best min(k, relevant) items and "
    "the k best others. Partial AUC for users with few relevant items, and close to precision@k "
    "for users with many.",
    _kernels.PAUC: "Share of pairs in the right order, of all relevant and the k best other items.",
    _kernels.AUC: "Share of pairs of a relevant and another item in the right order; 0.5 for a "
    "random ranking, whatever the share of relevant items.",
    _kernels.AUC_AT_K: "AUC inside of the first k places.",
    _kernels.PRECISION: "Relevant items among the first k places, divided by k; notices only what "
    "crosses place k.",
    _kernels.RECALL: "Relevant items among the first k places, divided by all of the user's.",
    _kernels.AP: "Mean, over the relevant items, of the precision at their place (AUPRC); a random "
    "ranking has the share of relevant items.",
    _kernels.NDCG: "Gain of the list, discounted by place, over that of the best list; notices the "
    "order within the first k places and nothing below.",
    _kernels.RR: "1 / place of the first relevant item.",
    _kernels.HIT: "1 where a relevant item is among the first k places, else 0.",
}
_SYNONYMS = {
    "prec": "precision", "p": "precision", "map": "ap", "mrr": "rr", "r": "recall",
    "hitrate": "hit", "hits": "hit", "hr": "hit",
}  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """A parsed metric name: its formula in the kernel and its cut-off, None for the whole list."""

    name: str
    code: int
    k: int | None

    @property
    def kernel_k(self) -> int:
        """The cut-off as the kernel takes it."""
        return _kernels.WHOLE_LIST if self.k is None else self.k

    @property
    def needs_negatives(self) -> bool:
        """Whether fewer than k negatives leave the value to a convention."""
        return self.code in (_kernels.PAP, _kernels.PAUC)

    @property
    def meaning(self) -> str:
        """What the value says, in a sentence."""
        return _MEANINGS[self.code]


def as_names(metrics: str | Iterable[str]) -> list[str]:
    """The names of one metric or of several, each once."""
    names = [metrics] if isinstance(metrics, str) else metrics
    names = list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"metrics={metrics!r} must be a name or a list of names, as 'pap@10'")
    if not names:
        raise InputError("no metric was asked for; name at least one, for example pap@10")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"metric asked for twice: {', '.join(twice)}")
    return names


def parse(name: str) -> Metric:
    """Metric of a name; an unknown name raises with the nearest known one."""
    match = re.fullmatch(r"\s*([A-Za-z]+)\s*(?:@\s*([+-]?[\w.]+))?\s*", str(name))
    kind = match[1].lower() if match else ""
    if match is None or kind not in _KINDS:
        raise InputError(f"there is no metric {name!r}; {_suggestion(name)}")
    code, cut = _KINDS[kind]
    if match[2] is None:
        if cut == _NEEDED:
            raise InputError(f"metric {name!r} needs a cut-off, for example {kind}@10")
        return Metric(name, code, None)
    if cut == _NEVER:
        raise InputError(f"metric {kind!r} takes no cut-off, but {name!r} was asked for")
    code = _kernels.AUC_AT_K if code == _kernels.AUC else code
    return Metric(name, code, cutoff(name, match[2]))


def cutoff(name: str, text: str) -> int:
    """The k of a metric's name, from its text."""
    whole = re.fullmatch(r"\+?(\d+)(?:\.0*)?", text)  # 10.0 is 10
    k = int(whole[1]) if whole else 0
    if k < 1:
        raise InputError(f"in metric {name!r} the cut-off k must be a whole number of 1 or more")
    if k > _LARGEST_K:
        raise InputError(f"in metric {name!r} the cut-off k is above {_LARGEST_K}, the largest k")
    return k


def _suggestion(name: str) -> str:
    written, _, k = str(name).lower().strip().partition("@")
    base = _SYNONYMS.get(written) or next(iter(difflib.get_close_matches(written, _KINDS, 1, 0)))
    _, cut = _KINDS[base]
    wanted = f"{base}@{k or 'k'}" if cut == _NEEDED or (k and cut == _OPTIONAL) else base
    return f"did you mean {wanted!r}? Known names: {', '.join(KNOWN)}"
