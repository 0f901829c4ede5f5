"""Self-contained pages from templates (jinja2, the extra `report`)."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec

from structsvm_papk.errors import InputError


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
