"""The picture of the home page: how well rankers rank, from the results beside this file.

At build time it is drawn for light and for dark pages. ``python docs/_site/quality.py`` draws
docs/assets/ranking-quality.png, for the README.
"""

import io
import json
from pathlib import Path

from matplotlib import pyplot as plt
from mkdocs.structure.files import File

_HERE = Path(__file__).parent
_COLOURS = {"light": ("#263238", "#b0bec5", "#00796b"), "dark": ("#e3e7ea", "#607d8b", "#4db6ac")}


def on_files(files, config):
    """Add the picture for light and for dark pages."""
    for scheme in _COLOURS:
        name = f"assets/ranking-quality-{scheme}.svg"
        files.append(File.generated(config, name, content=picture(scheme, "svg")))
    return files


def picture(scheme, form):
    """Bars with their values, best above; the package's own methods in colour."""
    results = json.loads((_HERE / "quality.json").read_text())
    rows = sorted(results["rows"], key=lambda row: row["value"])
    text, other, own = _COLOURS[scheme]
    with plt.rc_context({"font.size": 11, "svg.hashsalt": "quality", "text.color": text}):
        figure, ax = plt.subplots(figsize=(6.2, 0.42 * len(rows) + 0.6), layout="constrained")
        colours = [own if row.get("own") else other for row in rows]
        bars = ax.barh([row["name"] for row in rows], [row["value"] for row in rows], 0.62)
        for bar, colour in zip(bars, colours, strict=True):
            bar.set_color(colour)
        ax.bar_label(bars, fmt="%.3f", padding=4)
        ax.set_title(results["title"], loc="left", fontsize=11)
        ax.set_xlim(0, 1.12 * max(row["value"] for row in rows))
        ax.spines[:].set_visible(False)
        ax.tick_params(left=False, bottom=False, labelbottom=False, labelcolor=text)
        content = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else None  # the same bytes at every build
        figure.savefig(content, format=form, transparent=form == "svg", dpi=150, metadata=metadata)
        plt.close(figure)
    return content.getvalue()


if __name__ == "__main__":
    (_HERE.parent / "assets" / "ranking-quality.png").write_bytes(picture("light", "png"))
