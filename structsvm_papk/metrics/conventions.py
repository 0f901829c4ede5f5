"""The rules on which libraries differ, each an explicit choice, and presets that name whole sets.

Ties between a positive and a negative (`ties`):

========== ===========================================================================
loss       a tied pair is an error; negatives stand before positives (Def. 1 of the paper)
win        a tied pair is a success; positives stand before negatives (RecTools on scores)
half       a tied pair counts one half; rank metrics take the mean over the orders of a block
threshold  as `half`, but average precision treats a tied block as one threshold (scikit-learn)
========== ===========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from structsvm_papk.errors import check_choice
from structsvm_papk.metrics import _kernels

TIES = {
    "loss": _kernels.LOSS,
    "half": _kernels.HALF,
    "win": _kernels.WIN,
    "threshold": _kernels.THRESHOLD,
}
FEW_NEGATIVES = {
    "exclude": _kernels.EXCLUDE,
    "raise": _kernels.EXCLUDE,
    "normalise": _kernels.NORMALISE,
    "as_wins": _kernels.AS_WINS,
}
IDEAL = {"achievable": _kernels.ACHIEVABLE, "all_places": _kernels.ALL_PLACES}
NO_POSITIVES = ("exclude", "zero", "one", "nan", "raise")
MEANS = ("user", "positives", "pairs", "pooled")
INSUFFICIENT = ("ignore", "exclude", "raise")
_CHOICES = {
    "ties": tuple(TIES),
    "few_negatives": tuple(FEW_NEGATIVES),
    "no_positives": NO_POSITIVES,
    "auc_no_positives": NO_POSITIVES,
    "ideal": tuple(IDEAL),
    "mean": MEANS,
    "insufficient_handling": INSUFFICIENT,
}


@dataclass(frozen=True)
class Conventions:
    """What happens where the textbook formula leaves a choice.

    Parameters
    ----------
    ties : {"loss", "half", "win", "threshold"}
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
    """

    ties: str = "loss"
    few_negatives: str = "exclude"
    no_positives: str = "exclude"
    auc_no_positives: str = "exclude"
    ideal: str = "achievable"
    mean: str = "user"
    insufficient_handling: str = "ignore"

    def __post_init__(self) -> None:
        for field in fields(self):
            check_choice(field.name, getattr(self, field.name), _CHOICES[field.name])

    def __str__(self) -> str:
        return ", ".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))


PRESETS = {
    "icml2020": Conventions(),
    "icml2020-code": Conventions(ties="half"),
    "rectools": Conventions(ties="win", few_negatives="as_wins", ideal="all_places"),
    "sklearn": Conventions(ties="threshold", no_positives="zero"),
}


def resolve(preset: str | Conventions, **choices: str | None) -> Conventions:
    """Conventions of a preset with the choices that are not None put over it.

    `preset` is a name of `PRESETS` or a `Conventions`. A choice of `no_positives` applies to the
    AUC as well, unless `auc_no_positives` is given.
    """
    if not isinstance(preset, Conventions):
        check_choice("preset", preset, PRESETS)
        preset = PRESETS[preset]
    given = {name: value for name, value in choices.items() if value is not None}
    if "no_positives" in given:
        given.setdefault("auc_no_positives", given["no_positives"])
    return replace(preset, **given)


def codes(rules: Conventions) -> tuple[int, int, int]:
    """The rules as the kernel takes them: ties, few negatives, ideal DCG."""
    return (TIES[rules.ties], FEW_NEGATIVES[rules.few_negatives], IDEAL[rules.ideal])
