"""Metric names such as `pap@10`, and what they stand for."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _kernels

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
