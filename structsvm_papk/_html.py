"""Tables for notebooks, and self-contained pages from templates (jinja2, the extra `report`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec

from structsvm_papk.errors import InputError


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


def check_templates() -> None:
    """Refuse a page that could not be made, before the work starts: jinja2 is missing."""
    if find_spec("jinja2") is None:
        raise InputError("HTML pages need jinja2; pip install 'structsvm-papk[report]'")


def filled(
    template: str,
    values: Mapping[str, object],
    filters: Mapping[str, Callable[..., object]] | None = None,
) -> str:
    """A template of the package with values put in; text is escaped, also inside of `tojson`."""
    check_templates()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    page = Environment(
        loader=PackageLoader("structsvm_papk", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    page.filters.update(filters or {})
    return page.get_template(template).render(values)
