"""CSV, TSV and Parquet: which column is the label, the user or a feature, and its values.

A user or an item is text as it stands in the file, so that `007` and `7` are two; in Parquet, whose
columns have types, it is what the type says.
"""

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import validation
from structsvm_papk.data.columns.checks import (
    ROUNDED,
    YOUR_TABLE,
    first_non_finite,
    first_rounded,
    what_to_do,
)
from structsvm_papk.data.columns.tables import (
    are_texts,
    is_number_text,
    levels_in,
    numbers_with_none,
    places_in,
)
from structsvm_papk.data.grades import are_grades
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.roles import (
    Kind,
    column_of,
    is_named_as_id,
    label_column,
    listed,
    named_as_labels,
)
from structsvm_papk.errors import InputError, warn
from structsvm_papk.files import parquet
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.lines import errors_name, place_of, without_gz
from structsvm_papk.files.text import (
    how_to_leave_out,
    read_text,
    text_names,
    with_none,
)

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "tsv", "parquet")
_FORMAT_OF_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class Table:
    """What a file holds, before grades become relevance.

    Labels are the grades of the file, groups the user of each row; None where the file does not
    say. `first_index`, 0 or 1, is the svmlight index of the first
    column of X. `list_column` is the name of the column of lists; `columns_used` is one line that
    says what was taken for what. With `missing` X may hold NaN. In the columns that have `levels`
    X holds the place of each text among them, see `data.columns.tables`.
    """

    source: str
    X: Any
    labels: Array | None
    groups: Array | None
    columns_used: str
    feature_names: tuple[str, ...] | None = None
    first_index: int | None = None
    missing: str | None = None
    list_column: str | None = None
    levels: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that are not finite, but for holes that are asked for."""
        if self.labels is not None:
            bad = np.flatnonzero(~np.isfinite(self.labels))
            if bad.size:
                raise InputError(
                    f"{place_of(self.source, bad[0])}: the label is {self.labels[bad[0]]}"
                )
        feature = first_non_finite(self.X, self.missing)
        if feature is not None:
            name = f"feature {feature.column + (self.first_index or 0)}"
            if self.feature_names is not None:
                name = f"column {self.feature_names[feature.column]!r}"
            advice = what_to_do(feature.value, sparse.issparse(self.X))
            raise InputError(
                f"{place_of(self.source, feature.row)}: {name} is {feature.value}; {advice}"
            )

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.X.shape[1]

    def ranking_data(
        self, threshold: float | None = None, one_list: bool = False, label_gain: Any = None
    ) -> RankingData:
        """Turn the table into `RankingData`; with `one_list` all rows are ranked against each
        other, and with `label_gain` grades count as it says where there is no threshold.
        """
        if self.labels is None:
            raise InputError(f"{self.source}: no labels in the file")
        labels = self.labels
        if threshold is not None or label_gain is None or not are_grades(labels):
            labels = labels >= validation.relevant_from(labels, threshold, self.source)
            label_gain = None
        if self.groups is None and not one_list:
            lacking = "no user column; name it with group="
            if self.feature_names is None:  # svmlight
                lacking = "no qid: in the rows and no .query file beside it"
            raise InputError(
                f"{self.source} does not say which rows belong to which user ({lacking}); "
                "if all rows are one list, say so with groups='one_list'"
            )
        groups = None if one_list else self.groups
        data = RankingData.from_matrix(
            self.X, labels, groups, feature_names=self.feature_names, label_gain=label_gain
        )
        data.levels = self.levels
        return data


class Roles(NamedTuple):
    """Which columns of a file are the features, the label and the user; None: there is none.

    `used` is one line that says so.
    """

    features: tuple[str, ...]
    label: str | None
    group: str | None
    used: str
    item: str | None = None


def format_of(path: Path) -> str | None:
    """The format of a table by its name; None where it is not the name of one."""
    return _FORMAT_OF_SUFFIX.get(without_gz(path).suffix.lower())


# --- which column is what -------------------------------------------------------------------


def choose_columns(
    path: Any,
    names: list[str],
    index: Collection[str] = (),
    *,
    label: str = "label",
    group: str | None = None,
    ignore: Collection[str] = (),
    require_labels: bool = True,
    like: Any = None,
) -> Roles:
    """Find the label, the user and the features among the columns of a file, see `read_table`.

    Columns named as users, items or other ids usually are (`USER_COLUMNS`, `ITEM_COLUMNS`, names
    that end in `_id` or `Id`) are no features, nor is the index of a frame.
    Every step is linear in the number of columns.
    """
    places = _places(path, names)
    label = label_column(label, names)
    if "" in places:
        raise InputError(
            f"{path}: column {places[''] + 1} has no name (pandas writes its index so: "
            "use to_csv(index=False))"
        )
    if label == group and label in places:
        raise InputError(f"{path}: column {label!r} cannot be both the label and the user")
    if require_labels and label not in places:
        what_to_do = "choose one with label="
        if len(names) == 1:
            what_to_do = "columns are separated by commas, semicolons or tabs"
        raise InputError(
            f"{path}: no column {label!r} for the label; the columns are {listed(names)}; "
            f"{what_to_do}"
        )
    absent = [name for name in ignore if name not in places]
    if absent:
        raise InputError(f"{path}: no column {listed(absent)} to ignore; it has {listed(names)}")
    others = [name for name in names if name != label]
    group = column_of("user", others, path, group, "; name it with group=")
    features = tuple(_feature_columns(path, places, {label, group}.union(index, ignore), like))
    item = column_of("item", [name for name in others if name != group], path)
    if item in features:
        item = None
    labels = named_as_labels(features)
    if labels and like is None:
        warn(
            f"{path}: features are called as labels are: {listed(labels)}; unless they are meant, "
            f"leave them out with ignore={labels!r}"
        )
    existing_label = label if label in places else None
    taken = {existing_label, group, item}.union(features)
    ignored = [name for name in names if name not in taken]
    used = (
        f"{path}: {len(features)} features ({listed(features)}), "
        f"label {_or_none(existing_label)}, user {_or_none(group)}, item {_or_none(item)}, "
        f"ignored {listed(ignored) or 'none'}"
    )
    return Roles(features=features, label=existing_label, group=group, used=used, item=item)


def _or_none(name):
    return "none" if name is None else repr(name)


def _places(path, names):
    """Where each name stands."""
    places = {name: c for c, name in enumerate(names)}
    if len(places) < len(names):
        repeated = next(name for c, name in enumerate(names) if places[name] != c)
        raise InputError(f"{path}: column {repeated!r} appears more than once")
    return places


def _feature_columns(path, places, others, like):
    """Those of `like`, by name; else all but the `others` and what is named as ids usually are."""
    wanted = getattr(like, "feature_names", None)
    if wanted is not None:
        absent = [name for name in wanted if name not in places]
        if absent:
            raise InputError(
                f"{path}: no column {listed(absent)}, of the features of the model "
                f"({listed(wanted)})"
            )
        return wanted
    features = [name for name in places if name not in others and not is_named_as_id(name)]
    if not features:
        raise InputError(
            f"{path}: no feature column; the columns are {listed(list(places))}, and those of the "
            "label, users, items and other ids are none"
        )
    if like is not None and len(features) != like.n_features:
        raise InputError(f"{path}: {len(features)} features, but {like.n_features} are expected")
    return features


# --- reading --------------------------------------------------------------------------------


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn what the system says of a file into `InputError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None


def column_names(path: Any, format: str) -> list[str]:
    """Names of the columns, each once."""
    names, _ = _names_and_index(Path(path), format)
    return names


def _names_and_index(path, format):
    """Names of the columns, each once, and of those among them that are a frame's index."""
    with reading(path):
        if format == "parquet":
            with parquet.opened(path) as file:
                names = file.schema_arrow.names
                index = parquet.index_columns(path, file.schema_arrow)
        else:
            names = text_names(path, format)
            index = []
    _places(path, names)
    return names, index


def read_features(
    path: Path, format: str, like: Any = None, missing: str | None = None, **roles: Any
) -> Table:
    """The features, labels and users of a file with named columns, see `choose_columns`.

    With `missing` an empty cell, or a null of Parquet, is NaN.
    """
    names, index = _names_and_index(path, format)
    columns = choose_columns(path, names, index, like=like, **roles)
    number = Kind.NUMBER if missing is None else Kind.NUMBER_OR_HOLE
    kinds = dict.fromkeys(columns.features, number)
    known = {columns.features[j]: levels for j, levels in getattr(like, "levels", {}).items()}
    texts = [name for name, levels in known.items() if are_texts(levels)]
    kinds |= dict.fromkeys(texts, Kind.TEXT_OR_HOLE)
    if columns.label is not None:
        kinds[columns.label] = Kind.NUMBER
    if columns.group is not None:
        kinds[columns.group] = Kind.ID
    values = read_columns(path, format, kinds, columns.features)
    if format != "parquet":
        values |= {name: with_none(values[name], known[name]) for name in texts}
    features = {name: values[name] for name in columns.features}
    new = [name for name in features if features[name].dtype == object and name not in known]
    if new and like is not None:
        raise InputError(
            f"{path}: column {listed(new)} holds text, and in training it held numbers: its values "
            f"must be of the same kind {YOUR_TABLE}"
        )
    levels = {}
    for j, name in enumerate(columns.features):
        own = features[name]
        if own.dtype == object or name in known:
            if own.dtype != object:
                own = numbers_with_none(own)
            with errors_name(path):
                levels[j] = known[name] if name in known else _levels_in(name, own)
                _refuse_numbers(name, own, levels[j])
                features[name] = places_in(own, levels[j], name)
    X = feature_matrix(features, path)
    labels = None
    if columns.label is not None:
        labels = values[columns.label].astype(float)
    users = None
    if columns.group is not None:
        users = values[columns.group]
    return Table(
        source=str(path),
        X=X,
        labels=labels,
        groups=users,
        columns_used=columns.used,
        feature_names=columns.features,
        missing=missing,
        list_column=columns.group,
        levels=levels,
    )


def _levels_in(name: str, values: Array) -> tuple[Any, ...]:
    """The levels of a column of text; where it can have none, also how to leave it out."""
    try:
        return levels_in(values, name)
    except InputError as error:
        raise InputError(f"{error}; {how_to_leave_out(name)}") from None


def _refuse_numbers(name: str, values: Array, levels: Sequence[Any]) -> None:
    """Refuse a column of levels that holds nothing but numbers that are none of them."""
    there = [value for value in values if are_texts([value])]
    if there and not set(there) & set(levels) and all(map(is_number_text, there)):
        raise InputError(
            f"column {name!r} holds numbers ({there[0]!r}), and in training it held text "
            f"({levels[0]!r}): its values must be of the same kind {YOUR_TABLE}"
        )


def feature_matrix(columns: Mapping[str, Array], path: PathLike, first: int = 0) -> Array:
    """Columns of numbers as one matrix, float32 where every one of them is, else float64.

    They are the rows of a file from `first` on, for messages.
    """
    arrays = list(columns.values())
    all_float32 = all(values.dtype == np.float32 for values in arrays)
    dtype = np.float32 if all_float32 else np.float64
    X = np.empty((arrays[0].size, len(arrays)), dtype)
    for c, (name, values) in enumerate(columns.items()):
        X[:, c] = values
        row = first_rounded(values)
        if row is not None:
            raise InputError(
                f"{place_of(path, first + row)}: column {name!r} holds {values[row]}: {ROUNDED}"
            )
    return X


def read_columns(
    path: Any,
    format: str,
    kinds: Mapping[str, Kind],
    features: Collection[str] = (),
) -> dict[str, Array]:
    """Some columns of a file by name, which must be there; `kinds` says what they hold.

    Of text in one of the `features` the message says how to leave the column out. In Parquet
    columns are of the type of the file; else numbers are of the type that pandas finds, and ids are
    text. Features that are text are objects with None; texts that may be missing are objects with
    None in Parquet, and else as they stand in the file.
    """
    path = Path(path)
    with reading(path):
        if format == "parquet":
            return parquet.read_columns(path, kinds, features)
        columns = read_text(path, format, kinds, features)
    for name, kind in kinds.items():
        if kind is Kind.ID and "" in columns[name]:
            place = place_of(path, int(np.argmax(columns[name] == "")))
            raise InputError(
                f"{place}: column {name!r} is empty: every row needs its user and its item"
            )
    return columns


def write_table(path: Path, frame: "pd.DataFrame") -> None:
    """Write a frame in the format that a name says, by default CSV."""
    format = format_of(path)
    if format == "parquet":
        try:
            content = frame.to_parquet(index=False)
        except ImportError:
            raise InputError(
                f"writing Parquet ({path}) needs pyarrow: pip install pyarrow (the extra 'frames')"
            ) from None
    else:
        separator = "\t" if format == "tsv" else ","
        content = frame.to_csv(index=False, sep=separator, lineterminator="\n").encode()
    write_atomically(path, content)
