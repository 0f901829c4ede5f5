"""The picture of the home page: how well rankers rank, from a table of measured results.

At build time it is drawn for light and for dark pages. ``python docs/_site/quality.py`` draws
docs/assets/ranking-quality.png, for the README.
"""

import io
import json
from pathlib import Path

from matplotlib import pyplot as plt
from mkdocs.structure.files import File

_HERE = Path(__file__).parent
_RESULTS = _HERE / "quality.json"
_OWN = "PAPKRanker"  # names of the package's own methods begin so
_COLOURS = {"light": ("#263238", "#b0bec5", "#00796b"), "dark": ("#e3e7ea", "#607d8b", "#4db6ac")}


def on_files(files, config):
    """Add the picture for light and for dark pages."""
    for scheme in _COLOURS:
        name = f"assets/ranking-quality-{scheme}.svg"
        files.append(File.generated(config, name, content=picture(scheme, "svg")))
    return files


def picture(scheme, form):
    """Bars with their values, best above: the best recommender, and what combines them all."""
    results = json.loads(_RESULTS.read_text())
    recommenders = [row for row in results["rows"] if row["kind"] == "recommender"]
    best = max(recommenders, key=lambda row: row["ndcg"])
    rows = [row for row in results["rows"] if row["kind"] != "recommender"] + [best]
    rows.sort(key=lambda row: row["ndcg"])
    text, other, own = _COLOURS[scheme]
    with plt.rc_context({"font.size": 11, "svg.hashsalt": "quality", "text.color": text}):
        figure, ax = plt.subplots(figsize=(5.6, 0.42 * len(rows) + 0.5), layout="constrained")
        bars = ax.barh([row["name"] for row in rows], [row["ndcg"] for row in rows], 0.62)
        for bar, row in zip(bars, rows, strict=True):
            bar.set_color(own if row["name"].startswith(_OWN) else other)
        ax.bar_label(bars, fmt="%.3f", padding=4)
        ax.set_title(f"NDCG@{results['k']}, {results['dataset']}", loc="left", fontsize=11)
        ax.set_xlim(0, 1.15 * rows[-1]["ndcg"])
        ax.spines[:].set_visible(False)
        ax.tick_params(left=False, bottom=False, labelbottom=False, labelcolor=text)
        content = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else None  # the same bytes at every build
        figure.savefig(content, format=form, transparent=form == "svg", dpi=150, metadata=metadata)
        plt.close(figure)
    return content.getvalue()


if __name__ == "__main__":
    (_HERE.parent / "assets" / "ranking-quality.png").write_bytes(picture("light", "png"))
