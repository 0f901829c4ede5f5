"""Tables for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table as HTML, text escaped."""
    lines = [("th", head), *(("td", row) for row in rows)]
    body = "".join(
        "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in row) + "</tr>"
        for kind, row in lines
    )
    return f"<table>{body}</table>" + (
        f"<p><small>{escape(caption)}</small></p>" if caption else ""
    )
