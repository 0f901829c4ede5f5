"""Tables of measurements in Markdown, and their places in the pages of `benchmarks/results`.

A place is the text between the markers ``<!-- table NAME -->`` and ``<!-- end -->``.
"""

import json
import re
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"


def table(head, rows):
    """Lines of a table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def grouped(rows, key):
    """Rows that agree in a key, in the order of their first ones."""
    rows = list(rows)
    keys = list(dict.fromkeys(map(key, rows)))
    return [(each, [row for row in rows if key(row) == each]) for each in keys]


def span(values, form):
    """The smallest and the largest of some numbers."""
    low = format(min(values), form)
    high = format(max(values), form)
    return low if low == high else f"{low} to {high}"


def publish(answer, lines, path=None):
    """Print a page of results; with a path write them as JSON there, and the page beside it."""
    text = "\n".join(lines) + "\n"
    if path:
        path.write_text(json.dumps(answer, indent=1) + "\n")
        path.with_suffix(".md").write_text(text)
    print(text, end="")


def fill(page, tables):
    """Write tables into a page: by name the file of results, and what makes lines of its content.

    A file that is not there leaves its table as it is.
    """
    text = page.read_text()
    for name, (file, write) in tables.items():
        source = RESULTS / file
        place = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if source.exists() and place.search(text):
            lines = "\n".join(write(json.loads(source.read_text())))
            text = place.sub(lambda m, lines=lines: f"{m[1]}\n{lines}\n\n{m[2]}", text)
    page.write_text(text)
