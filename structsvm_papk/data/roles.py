"""Who is the list, who the item: which column of a file or a frame has which role, by its name."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from structsvm_papk.errors import InputError, warn

USER_COLUMNS = ("group", "user_id", "user", "qid", "query_id", "query")
ITEM_COLUMNS = (  # in any case, with any underscores
    "item_id", "item", "document", "docno", "doc_id", "document_id", "doc", "corpus_id",
    "product_id", "product", "movie_id", "movie", "track_id", "track", "song_id", "song",
    "article_id", "article", "book_id", "book", "isbn", "video_id", "video", "passage_id",
    "passage", "asin", "sku", "listing_id", "post_id", "news_id",
)  # fmt: skip
LABEL_COLUMNS = ("label", "relevant", "target", "y")
GRADE_COLUMNS = (
    "grade", "relevance", "relevance_grade", "rel", *LABEL_COLUMNS, "judgment", "judgement",
    "esci_label", "rating", "score",
)  # fmt: skip
USUAL = {  # names of each role, the first that is there counts
    "user": USER_COLUMNS,
    "item": ITEM_COLUMNS,
    "query": ("qid", "query_id", "query"),  # beside ids, `query` is the text of one
    "document": ("document", "docno", "doc_id", "document_id", "corpus_id"),
    "label": LABEL_COLUMNS,
    "grade": GRADE_COLUMNS,
}
_LABEL_NAMES = (  # of GRADE_COLUMNS, those that no feature has: a coordinate may be y
    "label", "relevant", "target", "grade", "relevance", "relevance_grade", "rel", "judgment",
    "judgement", "esci_label",
)  # fmt: skip
_NO_GRADES = (  # beside pairs, columns that nobody takes for grades, in any spelling
    "0", "q0", "iter", "iteration", "rank", "tag", "query", "title", "text", "timestamp",
    "datetime", "date", "time", "split", "subset", "locale", "language",
)  # fmt: skip
_ID_NAME = re.compile(r"(?i:(^|[_\W])ids?$)|[a-z]I[dD]s?$")
# by pandas, and by R
_INDEX_NAME = re.compile(r"^Unnamed: \d+$|^__index_level_\d+__$|^(?i:row[._ ]?names?)$")
RETRIEVED = ("query", "document")
RECOMMENDED = ("user", "item")
MEMBERS = (RETRIEVED[1], RECOMMENDED[1])
_SHOWN = 8  # names in a message


class Kind(Enum):
    """What a column holds: ids are never missing, numbers and texts with holes may be."""

    NUMBER = "number"
    NUMBER_OR_HOLE = "number or hole"
    TEXT_OR_HOLE = "text or hole"
    ID = "id"


def column_of(
    role: str, names: Collection[str], source: Any, given: str | None = None, hint: str = ""
) -> str | None:
    """The column of a role: the one `given`, which has to be there, or one of a usual name.

    None without one; of items, the only id among the names, beside usual ones of lists. Messages
    begin with the `source`, a file or what a frame is of, and end with the `hint`.
    """
    if given is None:
        usual = usual_column(USUAL.get(role, (role,)), names)
        return _only_id(names) if usual is None and role in MEMBERS else usual
    if given not in list(names):
        raise InputError(
            f"{source}: no column {given!r} for the {role}; it has {listed(names)}{hint}"
        )
    return given


def _only_id(names: Collection[str]) -> str | None:
    ids = [name for name in names if _ID_NAME.search(name) and _plain(name) not in _PLAIN_USERS]
    return ids[0] if len(ids) == 1 else None


def needed_column(
    role: str, names: Collection[str], source: Any, given: str | None = None, hint: str = ""
) -> str:
    """`column_of`, refused where there is none."""
    column = column_of(role, names, source, given, hint)
    if column is None:
        usual = [name for name in USUAL.get(role, ()) if name != role]
        others = f" (or {', '.join(usual[:_SHOWN])})" if usual else ""
        raise InputError(
            f"{source}: no column {role!r}{others}; it has {listed(names)}"
            f"{hint or f': rename the one that is meant to {role!r}'}"
        )
    return column


@dataclass(frozen=True)
class PairColumns:
    """Which columns of a run, or of judgments, have the list, its member and their number.

    `number` is None where judgments have no grades: every pair is relevant; `is_rank`: it is the
    rank of a run without scores. `used` says in one line what was taken for what.
    """

    lists: str
    members: str
    number: str | None
    used: str
    is_rank: bool = False


def list_roles(names: Collection[str]) -> tuple[str, str]:
    """Whether columns are of queries and documents, or of users and items."""
    if all(usual_column(USUAL[role], names) for role in RETRIEVED):
        return RETRIEVED  # documents have names that items have as well
    return RECOMMENDED if column_of("item", names, "") else RETRIEVED


def list_nouns(column: str | None) -> str:
    """What lists are called whose column has this name: users, queries, or just lists."""
    if column is None:
        return "lists"
    if usual_column(USUAL["query"], [column]):
        return "queries"
    return "users" if usual_column(("user", "user_id"), [column]) else "lists"


def pair_columns(
    names: Collection[str],
    source: Any,
    on: tuple[str, str],
    number: str,
    given: tuple[str | None, str | None, str | None] = (None, None, None),
) -> PairColumns:
    """The columns of a run (`number` is "score") or of judgments ("grade").

    Parameters
    ----------
    names : collection of str
        Columns that are there.
    source : object
        A file, or what a frame is of, for messages.
    on : pair of str
        Roles of lists and members, see `USUAL`.
    number : {"score", "grade"}
    given : three of str or None
        What lists and members are called elsewhere, which may be called so here, and the column of
        the number, which has to be there.

    Raises
    ------
    InputError
        A column that is not found; judgments with other columns, one of which may be the grade.
    """
    list_name, member_name = (name if name in names else None for name in given[:2])
    of_lists = needed_column(on[0], names, source, list_name)
    rest = [name for name in names if name != of_lists]
    of_members = needed_column(on[1], rest, source, member_name)
    rest = [name for name in rest if name != of_members]
    if number == "grade":
        of_number = _grade_column(rest, source, given[2])
    else:
        of_number = column_of(number, names, source, given[2]) or usual_column(("rank",), names)
        if of_number is None:
            of_number = needed_column(number, names, source)
    ignored = [name for name in rest if name != of_number]
    value = "no grades, every pair is relevant"
    if of_number is not None:
        value = f"{number} {of_number!r}"
    return PairColumns(
        lists=of_lists,
        members=of_members,
        number=of_number,
        is_rank=number == "score" and usual_column(("rank",), [of_number or ""]) is not None,
        used=(
            f"{source}: {on[0]} {of_lists!r}, {on[1]} {of_members!r}, {value}, "
            f"ignored {listed(ignored) or 'none'}"
        ),
    )


def _grade_column(names: Collection[str], source: Any, given: str | None) -> str | None:
    """The column of grades; None only where no column can be it."""
    column = column_of("grade", names, source, given)
    unknown = [
        name for name in names if not is_named_as_id(name) and _plain(name) not in _PLAIN_NO_GRADES
    ]
    if column is None and unknown:
        raise InputError(
            f"{source}: which column is the grade? None is called grade (or "
            f"{', '.join(GRADE_COLUMNS[1:_SHOWN])}, ..), and there are {listed(unknown)}: name it "
            "with grade=, or, where every pair is relevant, leave these columns out"
        )
    return column


def usual_column(usual: Sequence[str], names: Collection[str]) -> str | None:
    """The column called like the first of some usual names, in any case and with any `_` or `-`."""
    names = list(names)
    of_spelling = {}
    for name in reversed(names):  # the first of several that differ in case and in `_` only
        of_spelling[_plain(name)] = name
    for name in names:  # but rather the one that is spelled so
        of_spelling[name] = name
    for usual_name in usual:
        for spelling in (usual_name, _plain(usual_name)):
            if spelling in of_spelling:
                return of_spelling[spelling]
    return None


def label_column(label: str, names: Collection[str]) -> str:
    """The column of labels: the one asked for, or a usual name of it."""
    if label != LABEL_COLUMNS[0] or label in names:
        return label
    return usual_column(LABEL_COLUMNS, names) or label


def _plain(name):
    """A name without what spellings of it differ in."""
    return name.replace("_", "").replace("-", "").lower()


_PLAIN_USERS = frozenset(map(_plain, USER_COLUMNS))
_PLAIN_ID_COLUMNS = _PLAIN_USERS.union(map(_plain, ITEM_COLUMNS))
_PLAIN_NO_GRADES = frozenset(map(_plain, _NO_GRADES))
_PLAIN_LABELS = frozenset(map(_plain, _LABEL_NAMES))


def is_named_as_id(name: str) -> bool:
    """Whether a column is called as users, items or other ids usually are."""
    if _plain(name) in _PLAIN_ID_COLUMNS:
        return True
    return bool(_ID_NAME.search(name) or _INDEX_NAME.search(name))


def named_as_labels(names: Collection[str]) -> list[str]:
    """The columns that are called as labels usually are."""
    return [name for name in names if _plain(name) in _PLAIN_LABELS]


def warn_of_ids(X: Any) -> None:
    """Warn of a frame of features, of any kind, with columns named as ids, or labels, are."""
    names = [str(name) for name in getattr(X, "columns", ())]
    ids = [name for name in names if is_named_as_id(name)]
    for called, columns in (("ids", ids), ("labels", named_as_labels(names))):
        if columns:
            warn(
                f"X has columns that are called as {called} are, and every column is a feature: "
                f"{listed(columns)}; leave them out, as X.drop(columns=..), unless they are meant"
            )


def listed(names: Collection[str]) -> str:
    """Names for a message, the first ones of many."""
    more = f", .. {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, list(names)[:_SHOWN])) + more
