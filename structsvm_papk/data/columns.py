"""What columns of users, items and labels are called: by their names files and frames are read."""

import re
from collections.abc import Collection, Sequence

USER_COLUMNS = ("group", "user_id", "user", "qid", "query_id", "query")
ITEM_COLUMNS = (  # in any case, with any underscores
    "item_id", "item", "document_id", "document", "doc_id", "docno", "doc", "product_id",
    "product", "movie_id", "movie", "track_id", "track", "song_id", "song",
    "article_id", "article", "book_id", "book", "isbn", "video_id", "video", "passage_id",
    "passage", "asin", "sku", "listing_id", "post_id", "news_id",
)  # fmt: skip
LABEL_COLUMNS = ("label", "relevant", "target", "y")
GRADE_COLUMNS = ("grade", "relevance", "relevance_grade", "rel", *LABEL_COLUMNS)
_ID_NAME = re.compile(  # the last two: what pandas calls an index
    r"(?i:(^|[_\W])ids?$)|[a-z]I[dD]s?$|^Unnamed: \d+$|^__index_level_\d+__$"
)
_SHOWN = 8  # names in a message


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


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first ones of many."""
    more = f", .. {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more
