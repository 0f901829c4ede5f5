"""TeX formulas as MathML at build time: pages need no script and no font from elsewhere.

`pymdownx.arithmatex` (generic) marks them; every current browser shows MathML.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content, page, **_):
    """Replace the marked formulas of a page."""

    def mathml(match):
        tex = html.unescape(match["tex"]).strip()
        display = "block" if match["tag"] == "div" else "inline"
        try:
            found = convert(tex, display=display)
        except Exception as error:
            raise PluginError(f"{page.file.src_uri}: cannot read {tex!r} ({error!r})") from None
        if "\\" in found or "<mi>&</mi>" in found:  # what it does not know it hands on as text
            raise PluginError(f"{page.file.src_uri}: {tex!r} has a command that is not known")
        block = f'<div class="formula" tabindex="0">{found}</div>'
        return block if display == "block" else found

    return _MARKED.sub(mathml, content)
