"""The table of metrics in the reference, written from the rows that the package computes by."""

from structsvm_papk.metrics.definitions import METRICS

_PLACE = "<!-- the table of metrics -->"


def on_page_markdown(markdown, page, config, files):
    """Put the table where the page has a place for it."""
    if _PLACE not in markdown:
        return markdown
    rows = [f"| {_names(metric)} | {metric.meaning} |" for metric in METRICS]
    return markdown.replace(
        _PLACE, "\n".join(["| metric | value of one list |", "|---|---|", *rows])
    )


def _names(metric):
    return ", ".join(f"`{name}`" for name in (metric.name, *metric.also))
