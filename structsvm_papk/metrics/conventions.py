"""The rules on which libraries differ, each an explicit choice.

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

from dataclasses import dataclass, fields, replace
from typing import Any

from structsvm_papk.errors import check_choice, check_number
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
        pAp@k and pAUC(0, k/n_neg] of a user that has fewer than k negatives, however long its list:
        leave the user out (the paper's rule), raise, divide by the pairs that exist, or count each
        missing negative as ranked below.
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
        A list that was cut before k negatives and all positives were shown, so that pAp@k or pAUC@k
        is not known (the user may well have k): take what is there (understates), leave the user
        out, or raise. Without cut lists it says nothing.
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
    preset: str | Conventions | None, beside_pairs: bool = False, **choices: Any
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
