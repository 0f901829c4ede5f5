"""Who is the list, who the item: which column of a file or a frame has which role, by its name."""

import re
from collections.abc import Collection, Hashable, Sequence
from enum import Enum
from typing import Any

from structsvm_papk.errors import InputError

USER_COLUMNS = ("group", "user_id", "user", "qid", "query_id", "query")
ITEM_COLUMNS = (  # in any case, with any underscores
    "item_id", "item", "document_id", "document", "doc_id", "docno", "doc", "product_id",
    "product", "movie_id", "movie", "track_id", "track", "song_id", "song",
    "article_id", "article", "book_id", "book", "isbn", "video_id", "video", "passage_id",
    "passage", "asin", "sku", "listing_id", "post_id", "news_id",
)  # fmt: skip
LABEL_COLUMNS = ("label", "relevant", "target", "y")
GRADE_COLUMNS = ("grade", "relevance", "relevance_grade", "rel", *LABEL_COLUMNS)
USUAL = {  # names of each role, the first that is there counts
    "user": USER_COLUMNS,
    "item": ITEM_COLUMNS,
    "query": ("qid", "query_id", "query"),  # beside ids, `query` is the text of one
    "document": ("document", "docno", "doc_id", "document_id"),
    "label": LABEL_COLUMNS,
    "grade": GRADE_COLUMNS,
}
_ID_NAME = re.compile(  # the last two: what pandas calls an index
    r"(?i:(^|[_\W])ids?$)|[a-z]I[dD]s?$|^Unnamed: \d+$|^__index_level_\d+__$"
)
_SHOWN = 8  # names in a message


class Kind(Enum):
    """What a column holds: ids are never missing, numbers with holes may be."""

    NUMBER = "number"
    NUMBER_OR_HOLE = "number or hole"
    ID = "id"


def column_of(
    role: str, names: Collection[str], source: Any, given: str | None = None, hint: str = ""
) -> str | None:
    """The column of a role: the one `given`, which has to be there, or one of a usual name.

    None without one. Messages begin with the `source`, a file or what a frame is of, and end with
    the `hint`.
    """
    if given is None:
        return usual_column(USUAL.get(role, (role,)), names)
    if not isinstance(given, Hashable) or given not in names:
        raise InputError(
            f"{source}: no column {given!r} for the {role}; it has {listed(names)}{hint}"
        )
    return given


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


_PLAIN_ID_COLUMNS = frozenset(_plain(name) for name in (*USER_COLUMNS, *ITEM_COLUMNS))


def is_named_as_id(name: str) -> bool:
    """Whether a column is called as users, items or other ids usually are."""
    return _plain(name) in _PLAIN_ID_COLUMNS or _ID_NAME.search(name) is not None


def remark_of_ids(X: Any) -> str | None:
    """What to say of a frame of features with columns that are named as ids are."""
    names = [str(name) for name in getattr(X, "columns", ())]
    ids = [name for name in names if is_named_as_id(name)]
    if not ids:
        return None
    return (
        f"X has columns that are called as ids are, and every column is a feature: {listed(ids)}; "
        "leave them out, as X.drop(columns=..), unless they are meant"
    )


def listed(names: Collection[str]) -> str:
    """Names for a message, the first ones of many."""
    more = f", .. {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, list(names)[:_SHOWN])) + more
