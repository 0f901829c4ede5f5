"""How a file becomes ranked lists, and what of them counts in training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from structsvm_papk.cli._shared import console
from structsvm_papk.data.missing import filled_lists
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files.readers import read_table
from structsvm_papk.files.tables import Table
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all
from structsvm_papk.surrogates import Surrogate, make_surrogate


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file becomes ranked lists; the fields are the options of these names."""

    label: str
    group: str | None
    ignore: Sequence[str] | None
    first_index: int | None
    relevance_threshold: float | None = None
    one_list: bool = False
    missing: str | None = None
    label_gain: Any = None

    def __post_init__(self) -> None:
        if self.one_list and self.group is not None:
            raise InputError("--one-list and --group contradict each other: give one of them")

    def table(self, path: Path, like: Any = None, **more: Any) -> Table:
        """The table in a file, see `read_table`."""
        return read_table(
            path,
            label=self.label,
            group=self.group,
            ignore=self.ignore or (),
            first_index=self.first_index,
            missing=self.missing,
            like=like,
            **more,
        )

    def second_table(self, path: Path, like: Table) -> Table:
        """The table in a second file with the features of the first."""
        return replace(self, first_index=None).table(path, like)  # it may be of another format

    def lists(self, table: Table) -> RankingData:
        """The lists of a table."""
        return table.ranking_data(self.relevance_threshold, self.one_list, self.label_gain)


def say_columns(table: Any, lists: RankingData | None = None) -> None:
    """Say which columns of a file were taken for what, and what its labels were taken for."""
    console.note(table.columns_used)
    for remark in () if lists is None else lists.remarks:
        console.note(remark)


@dataclass(frozen=True, kw_only=True)
class Weighting:
    """What counts in training, and how much: negatives, users and columns."""

    depth: int | float | None
    user_weight: str
    standardize: bool | str

    @property
    def content(self) -> dict[str, Any]:
        """The choices as JSON says them."""
        return {
            "depth": self.depth,
            "user_weight": self.user_weight,
            "standardized": bool(self.standardize),
        }

    def title(self, **more: float | str) -> str:
        """What was minimised, for the title of a table."""
        parts = []
        for name, value in more.items():
            text = value if isinstance(value, str) else f"{value:g}"
            parts.append(f"{name} = {text}")
        parts.append(f"depth {self.depth or 'k'}")
        parts.append(f"users' weight {self.user_weight}")
        parts.append("standardized columns" if self.standardize else "columns as they are")
        return ", ".join(parts)

    def surrogate(self, name: str, k: int) -> Surrogate:
        """The surrogate called `name` at this depth."""
        return make_surrogate(name, k, self.depth)

    def lists(
        self, lists: RankingData, surrogate: Surrogate, missing: str | None = None
    ) -> RankingData:
        """The lists as they are trained on, where the surrogate's depth suits them."""
        refuse_deeper_than_all(surrogate, lists.most_negatives)
        lists = filled_lists(lists, missing)
        lists = lists.standardized(self.standardize)
        if self.user_weight == "equal":
            return lists
        return lists.weighted(self.user_weight)
