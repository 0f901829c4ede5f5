"""The table of metrics: a row says what a metric is called, how it is computed, what it means.

A metric of a binary list is a sum over its positives, which a kernel makes, divided by the largest
value that the sum could have. A metric of graded labels has a kernel of the gains in the order of
the list. Names, help, messages and the manual are read from the rows, so a new metric is a kernel
in `_kernels` and a row here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_names
from structsvm_papk.metrics import _kernels

_LARGEST_K = 10**9
_LARGEST_GRADE = 4


class Terms(NamedTuple):
    """What a metric may depend on beside the list: the cut-off and the rules of a call."""

    k: int  # `_kernels.WHOLE_LIST` without a cut-off
    ties: int
    few_negatives: int
    all_places: bool  # whether NDCG@k divides by k hits
    discounts: _kernels.Discounts
    gains: Callable[[Array], Array]  # of grades, as NDCG was asked for


Arguments: TypeAlias = Callable[[Terms], tuple[Any, ...]]
Largest: TypeAlias = Callable[[Terms, Array, Array], Array]


# --- what kernels take, and what sums are divided by ----------------------------------------------


def no_argument(terms: Terms) -> tuple[Any, ...]:
    """For a kernel that looks at the whole list."""
    return ()


def cut_off(terms: Terms) -> tuple[Any, ...]:
    """For a kernel that looks at the first k places."""
    return (terms.k,)


def cut_off_and_ties(terms: Terms) -> tuple[Any, ...]:
    """For a kernel that knows a rule of its own for ties."""
    return terms.k, terms.ties


def cut_off_and_discounts(terms: Terms) -> tuple[Any, ...]:
    """For discounted gains."""
    return terms.k, terms.discounts


def best_positives(terms: Terms) -> tuple[Any, ...]:
    """Pairs of the k best positives and the k best negatives; whether k is capped to those."""
    return terms.k, terms.k, terms.few_negatives == _kernels.NORMALISE


def all_positives(terms: Terms) -> tuple[Any, ...]:
    """Pairs of all positives and the k best negatives."""
    return _kernels.WHOLE_LIST, terms.k, terms.few_negatives == _kernels.NORMALISE


def all_pairs(terms: Terms) -> tuple[Any, ...]:
    """Pairs of all positives and all negatives."""
    return _kernels.WHOLE_LIST, _kernels.WHOLE_LIST, True


def nothing(terms: Terms, n_pos: Array, n_neg: Array) -> Array:
    """The sum is the value."""
    return np.ones(n_pos.size)


def k_places(terms: Terms, n_pos: Array, n_neg: Array) -> Array:
    """All of the first k places are hits."""
    return np.full(n_pos.size, float(terms.k))


def each_positive(terms: Terms, n_pos: Array, n_neg: Array) -> Array:
    """Every positive counts one."""
    return n_pos.astype(float)


def places_shown(terms: Terms, n_pos: Array, n_neg: Array) -> Array:
    """The first k places, or as many as the list has."""
    return np.minimum(terms.k, n_pos + n_neg).astype(float)


def pairs_of(arguments: Arguments) -> Largest:
    """How many pairs a kernel counts that takes these arguments; NaN where a rule leaves out."""

    def largest(terms: Terms, n_pos: Array, n_neg: Array) -> Array:
        most, wide, capped = arguments(terms)
        pairs = np.minimum(n_pos, most).astype(float)
        pairs *= np.minimum(n_neg, wide) if capped else wide
        if terms.few_negatives == _kernels.EXCLUDE and not capped:
            pairs[n_neg < wide] = np.nan
        return pairs

    return largest


def best_order(terms: Terms, n_pos: Array, n_neg: Array) -> Array:
    """Discounts of the first places, as many as there are positives, or k, or rows."""
    ideal = terms.discounts.sums
    if terms.all_places and terms.k != _kernels.WHOLE_LIST:
        return np.full(n_pos.size, ideal[min(terms.k, ideal.size - 1)])
    places = n_pos + n_neg if terms.all_places else n_pos
    return ideal[np.minimum(terms.k, places)]


# --- gains of grades ------------------------------------------------------------------------------


def chosen(terms: Terms, grades: Array) -> Array:
    """What the caller says that a grade is worth."""
    return terms.gains(grades)


def chance_to_stop(terms: Terms, grades: Array) -> Array:
    """``(2^grade - 1) / 16``: whether a reader is content with an item (gdeval, grades 0 to 4)."""
    bad = (grades < 0) | (grades > _LARGEST_GRADE)
    if bad.any():
        raise InputError(
            f"err@k is defined for grades from 0 to {_LARGEST_GRADE}, and a label is "
            f"{grades[bad][0]:g}: give grades on that scale"
        )
    return np.asarray((np.exp2(grades) - 1.0) / 2.0**_LARGEST_GRADE)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A row of the table.

    Attributes
    ----------
    name : str
        With a cut-off where it ends in ``@k``.
    meaning : str
        What a value says, in a sentence.
    kernel : function or None
        Of a binary list, its sum over the positives of each user:
        ``kernel(ranks, bounds, counts, *arguments(terms), out)``, see `_kernels`. None: the
        gains say all.
    arguments : function
    largest : function
        ``largest(terms, n_pos, n_neg)``, what the sums of all users are divided by; users have no
        value where it is not above 0.
    of_gains : function or None
        Of graded labels: ``of_gains(lists, *arguments(terms), out)`` for `_kernels.InOrder`. Users
        without a gain above 0 have no value.
    gain : function
        ``gain(terms, grades)``, what grades are worth to it.
    over_best : bool
        Whether the value of the gains is divided by that of the best order.
    needs_negatives : bool
        Whether fewer than k negatives leave the value to a convention.
    needs_whole_list : bool
        Whether a list that was cut has no value.
    of : str
        Which rows of a list count, see `RankedLists.views`: all, "judged" ones, or all with
        "known" as what is relevant: that it was judged.
    no_positives : str
        The convention for users without positives; of what is known they have 0.
    also : tuple of str
        Other names.
    """

    name: str
    meaning: str
    kernel: Callable[..., None] | None
    arguments: Arguments = no_argument
    largest: Largest = nothing
    of_gains: Callable[..., None] | None = None
    gain: Callable[[Terms, Array], Array] = chosen
    over_best: bool = False
    needs_negatives: bool = False
    needs_whole_list: bool = False
    of: str = "all"
    no_positives: str = "no_positives"
    also: tuple[str, ...] = ()

    @property
    def graded(self) -> bool:
        """Whether the gains of graded labels count."""
        return self.of_gains is not None


METRICS = (
    Metric(
        "pap@k",
        "Share of pairs in the right order, of a user's best min(k, relevant) items and the k best "
        "others. Partial AUC for users with few relevant items, and close to precision@k for users "
        "with many.",
        _kernels.pairs_won,
        best_positives,
        pairs_of(best_positives),
        needs_negatives=True,
    ),
    Metric(
        "pauc@k",
        "Share of pairs in the right order, of all relevant and the k best other items.",
        _kernels.pairs_won,
        all_positives,
        pairs_of(all_positives),
        needs_negatives=True,
    ),
    Metric(
        "auc",
        "Share of pairs of a relevant and another item in the right order; 0.5 for a random "
        "ranking, whatever the share of relevant items.",
        _kernels.pairs_won,
        all_pairs,
        pairs_of(all_pairs),
        needs_whole_list=True,
        no_positives="auc_no_positives",
        also=("auroc",),
    ),
    Metric(
        "precision@k",
        "Relevant items among the first k places, divided by k; notices only what crosses place k.",
        _kernels.hits,
        cut_off,
        k_places,
    ),
    Metric(
        "recall@k",
        "Relevant items among the first k places, divided by all of the user's.",
        _kernels.hits,
        cut_off,
        each_positive,
    ),
    Metric(
        "hit@k",
        "1 where a relevant item is among the first k places, else 0.",
        _kernels.any_hits,
        cut_off,
    ),
    Metric(
        "ap",
        "Mean, over the relevant items, of the precision at their place (AUPRC); a random ranking "
        "has the share of relevant items.",
        _kernels.precision_sums,
        cut_off_and_ties,
        each_positive,
        also=("auprc", "map"),
    ),
    Metric(
        "ap@k",
        "Sum, over the relevant items among the first k places, of the precision at their place, "
        "divided by the number of all relevant items (trec_eval's map_cut).",
        _kernels.precision_sums,
        cut_off_and_ties,
        each_positive,
        also=("map@k",),
    ),
    Metric(
        "ndcg@k",
        "Gain of the list, discounted by place, over that of the best list; notices the order "
        "within the first k places and nothing below.",
        _kernels.discounted_gains,
        cut_off_and_discounts,
        best_order,
        of_gains=_kernels.graded_gains,
        over_best=True,
    ),
    Metric(
        "ndcg",
        "Gain of the list, discounted by place, over that of the best list.",
        _kernels.discounted_gains,
        cut_off_and_discounts,
        best_order,
        of_gains=_kernels.graded_gains,
        over_best=True,
    ),
    Metric(
        "err@k",
        "Expected 1 / place of the item at which a reader stops, whom an item of grade g contents "
        "with probability (2^g - 1) / 16; grades 0 to 4, as gdeval has it.",
        None,
        cut_off,
        of_gains=_kernels.expected_reciprocal_ranks,
        gain=chance_to_stop,
    ),
    Metric(
        "rr",
        "1 / place of the first relevant item.",
        _kernels.first_hits,
        cut_off,
        also=("mrr",),
    ),
    Metric(
        "rr@k",
        "1 / place of the first relevant item, 0 where it is not among the first k (MS MARCO's "
        "MRR@10).",
        _kernels.first_hits,
        cut_off,
        also=("mrr@k",),
    ),
    Metric(
        "rprec",
        "R-precision: relevant items among the first R places, divided by R, the number of the "
        "user's relevant items.",
        _kernels.hits_among_as_many,
        largest=each_positive,
    ),
    Metric(
        "bpref",
        "Share of relevant items that stand before items judged not relevant, of which as many "
        "count as there are relevant ones; what was not judged plays no part.",
        _kernels.preferences,
        largest=each_positive,
        of="judged",
    ),
    Metric(
        "judged@k",
        "Share of the first k places, or of a shorter list, whose item was judged; the rest counts "
        "as not relevant in other metrics.",
        _kernels.hits,
        cut_off,
        places_shown,
        of="known",
    ),
    Metric(
        "auc@k",
        "AUC inside of the first k places; 1 where they hold relevant items only, 0 where none.",
        _kernels.areas_at_k,
        cut_off,
        no_positives="auc_no_positives",
        also=("auroc@k",),
    ),
)
_SYNONYMS = {
    "prec": "precision", "p": "precision", "r": "recall", "rprecision": "rprec", "success": "hit",
    "hitrate": "hit", "hits": "hit", "hr": "hit",
}  # fmt: skip


_BY_NAME = {name: metric for metric in METRICS for name in (metric.name, *metric.also)}
_KINDS = list(dict.fromkeys(name.removesuffix("@k") for name in _BY_NAME))  # without cut-offs


def known_names() -> str:
    """The names of the table, other names in brackets."""
    return ", ".join(m.name + (f" ({', '.join(m.also)})" if m.also else "") for m in METRICS)


def described() -> str:
    """The table as text, a row a metric, for help."""
    width = max(len(metric.name) for metric in METRICS)
    return "\n".join(f"{metric.name:<{width}}  {metric.meaning}" for metric in METRICS)


# --- names as they are asked for ------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A metric by the name it was asked for, with its cut-off, None for the whole list."""

    name: str
    metric: Metric
    k: int | None

    @property
    def kernel_k(self) -> int:
        """The cut-off as the kernel takes it."""
        return _kernels.WHOLE_LIST if self.k is None else self.k


def metric_names(metrics: str | Iterable[str]) -> list[str]:
    """The names of one metric or of several, each once."""
    names = [metrics] if isinstance(metrics, str) else list(as_names("metrics", metrics, str))
    if not names:
        raise InputError("no metric was asked for; name at least one, for example pap@10")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"metric asked for twice: {', '.join(twice)}")
    return names


def parse(name: str) -> Asked:
    """Metric of a name; an unknown name raises with the nearest known one."""
    match = re.fullmatch(r"\s*([A-Za-z]\w*)\s*(?:@\s*([+-]?[\w.]+))?\s*", str(name))
    kind = match[1].lower() if match else ""
    if match is None or kind not in _KINDS:
        raise InputError(f"there is no metric {name!r}; {_suggestion(name)}")
    whole = _BY_NAME.get(kind)
    cut = _BY_NAME.get(f"{kind}@k")
    if match[2] is None:
        if whole is None:
            raise InputError(f"metric {name!r} needs a cut-off, for example {kind}@10")
        return Asked(name, whole, None)
    if cut is None:
        raise InputError(f"metric {kind!r} takes no cut-off, but {name!r} was asked for")
    return Asked(name, cut, cutoff(name, match[2]))


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
    several = re.split(r"[\s;,|]+", str(name).strip(" ;,|"))
    if len(several) > 1:
        return f"several are given as a list, with commas on the command line: {','.join(several)}"
    written, _, k = str(name).lower().strip().partition("@")
    base = _SYNONYMS.get(written)
    if base not in _KINDS:
        base = difflib.get_close_matches(written, _KINDS, n=1, cutoff=0)[0]
    wanted = base
    if f"{base}@k" in _BY_NAME and (k or base not in _BY_NAME):
        wanted = f"{base}@{k if k.isdecimal() else 'k'}"
    return f"did you mean {wanted!r}? Known names: {known_names()}"
