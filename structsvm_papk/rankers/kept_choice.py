"""What folds chose, in the checkpoint of a fit: a fit that goes on does not ask them again.

Folds that a time limit or Ctrl-C ended early are asked again. Where more of them choose another
setting, the fit begins anew, as what the checkpoint holds is of another problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from structsvm_papk.data.columns.knots import check_curves
from structsvm_papk.errors import check_number
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.rankers.settings import Setting, check_alpha

_DECIDED = ("surrogate", "alpha", "pieces", "stiffness", "n_pairs")  # fields of `Setting`


@dataclass(frozen=True)
class KeptChoice:
    """What folds chose.

    Attributes
    ----------
    given : str
        Fingerprint of what they chose for: lists, settings, and what was left to them.
    setting : Setting
    summary : str
        A sentence that says so.
    n_folds : int
        How many were finished.
    complete : bool
        Whether all were.
    """

    given: str
    setting: Setting
    summary: str
    n_folds: int
    complete: bool

    @classmethod
    def read(cls, checkpoint: Checkpoint, given: str, setting: Setting) -> KeptChoice | None:
        """The choice that a checkpoint holds for what was given; None where it holds none."""
        content = checkpoint.kept_choice()
        if content is None or content.get("given") != given:
            return None
        try:
            decided = {name: content["setting"][name] for name in _DECIDED}
            chosen = decided.pop("surrogate")
            if chosen != setting.name:
                setting = setting.with_surrogate(chosen)
            check_alpha(decided["alpha"])
            check_curves(decided["pieces"])
            check_number("stiffness", decided["stiffness"], above=0)
            check_number("n_pairs", decided["n_pairs"], least=1, optional=True)
            return cls(
                given=given,
                setting=replace(setting, **decided),
                summary=str(content["summary"]),
                n_folds=int(content["n_folds"]),
                complete=bool(content["complete"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise checkpoint.damaged(f"no run writes such a choice ({error})") from None

    def content(self) -> dict[str, Any]:
        """What a checkpoint holds, as plain values."""
        setting = {name: getattr(self.setting, name) for name in _DECIDED}
        return {
            "given": self.given,
            "setting": setting | {"surrogate": self.setting.name},
            "summary": self.summary,
            "n_folds": self.n_folds,
            "complete": self.complete,
        }
