"""The examples gallery: every script of examples/ runs at build time, as a user would run it.

A script opens with a docstring: its question as a title, then what the page says. Lines ``# %%``
followed by comments are text between the parts of its code. What it prints and the picture that it
saves, ``NAME.png``, are shown; a script that fails, or saves no picture, stops the build. Outputs
are kept in .cache/gallery until the script or the package changes.
"""

import ast
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
_CACHE = ROOT / ".cache" / "gallery"


def on_files(files, config):
    """Add a page, a picture and the script for each example, and the page that lists them."""
    scripts = sorted((ROOT / "examples").glob("*.py"), key=_place)
    with ThreadPoolExecutor(2) as pool:
        outputs = dict(zip(scripts, pool.map(_output, scripts), strict=True))
    for script, (printed, picture) in outputs.items():
        page = _page(script, printed, picture is not None)
        add = [(".md", page), (".py", script.read_bytes())]
        if picture is not None:
            add.append((".png", picture))
        for suffix, content in add:
            name = f"examples/{script.stem}{suffix}"
            files.append(File.generated(config, name, content=content))
    files.append(File.generated(config, "examples/index.md", content=_index(outputs)))
    return files


def _place(script):
    """Scripts in the order of the list in examples/README.md."""
    order = (ROOT / "examples" / "README.md").read_text()
    if f"({script.name})" not in order:
        raise PluginError(f"examples/README.md does not list {script.name}")
    return order.index(f"({script.name})")


def _output(script):
    """What the script prints and the picture that it saves, from the cache where it is fresh."""
    kept = _CACHE / f"{script.stem}-{_fingerprint(script)}"
    text, picture = kept.with_suffix(".txt"), kept.with_suffix(".png")
    if not text.exists():
        printed, drawn = _run(script)
        _CACHE.mkdir(parents=True, exist_ok=True)
        for old in _CACHE.glob(f"{script.stem}-*"):
            old.unlink()
        if drawn is not None:
            picture.write_bytes(drawn)
        text.write_text(printed)
    return text.read_text(), picture.read_bytes() if picture.exists() else None


def _fingerprint(script):
    digest = hashlib.sha256(script.read_bytes())
    for source in sorted((ROOT / "structsvm_papk").rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _run(script):
    environment = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise PluginError(f"examples/{script.name} failed:\n{done.stderr}")
        picture = Path(place) / f"{script.stem}.png"
        return done.stdout, picture.read_bytes() if picture.exists() else None


def _title_and_text(script):
    title, _, text = ast.get_docstring(ast.parse(script.read_text())).partition("\n")
    return title.rstrip("."), text.strip()


def _page(script, printed, has_picture):
    title, text = _title_and_text(script)
    code = script.read_text().split('"""', 2)[2]
    parts = [f"# {title}", text]
    for cell in re.split(r"^# %%\n", code, flags=re.MULTILINE):
        comment = re.match(r"(?:#.*\n)*", cell)[0]
        if comment:
            parts.append(re.sub(r"^# ?", "", comment, flags=re.MULTILINE).strip())
        if cell[len(comment) :].strip():
            parts.append(f"```python\n{cell[len(comment) :].strip()}\n```")
    parts += [
        "It prints",
        f"```text\n{printed.rstrip()}\n```",
    ]
    if has_picture:
        parts.append(f"and draws\n\n![{title}]({script.stem}.png)")
    parts.append(f"[{script.name}]({script.name}) is the whole script.")
    return "\n\n".join(parts) + "\n"


def _index(outputs):
    lines = [
        "# Examples",
        "Short scripts, one question each. They ran when this site was built; what they print and "
        "draw is shown beside their code.",
    ]
    for script, (_, picture) in outputs.items():
        title, text = _title_and_text(script)
        first = text.split("\n\n")[0].replace("\n", " ")
        lines.append(f"## [{title}]({script.stem}.md)\n\n{first}")
        if picture is not None:
            lines.append(f"[![{title}]({script.stem}.png){{ width=420 }}]({script.stem}.md)")
    return "\n\n".join(lines) + "\n"
