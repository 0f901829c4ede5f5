"""Files that a command writes: refused before any work, and the pictures among them written."""

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from structsvm_papk.cli._shared import console
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import check_apart, check_writable, write_atomically
from structsvm_papk.files.readers import sidecar
from structsvm_papk.plots.figures import refuse_without_matplotlib

_PLOTS = (".png", ".svg", ".pdf")
_FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".json": "JSON",
    ".onnx": "ONNX",
    ".html": "HTML",
    ".npy": "NumPy's format",
    ".npz": "NumPy's format",
    ".gz": "compressed",
    ".zip": "compressed",
    ".xlsx": "Excel's format",
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle"),
}


def check_outputs(
    inputs: Iterable[Path | None],
    files: Iterable[tuple[Path | None, str]] = (),
    *,
    plot: Path | None = None,
) -> None:
    """Refuse, before any work, what cannot be written or would destroy what is read.

    Parameters
    ----------
    inputs : iterable of Path or None
        Files and folders that the command reads; the counts of rows beside them are among them.
    files : iterable of pairs of Path or None and str
        Files that it writes, and in which format: a name that says another one is refused.
    plot : Path, optional
        A picture that it draws.
    """
    read = [path for path in inputs if path is not None]
    read += [counts for path in read if (counts := sidecar(path)) is not None]
    given = [(path, what) for path, what in files if path is not None]
    written = [path for path, _ in given]
    if plot is not None:
        written.append(plot)
    check_apart(written, [path for path in read if path.exists()])
    if plot is not None:
        if plot.suffix.lower() not in _PLOTS:
            raise InputError(f"cannot draw {plot}: the name must end in {', '.join(_PLOTS)}")
        refuse_without_matplotlib()
    for path in written:
        check_writable(path)
    for path, what in given:
        named = _FORMATS.get(path.suffix.lower())
        if named is not None and named not in what:
            raise InputError(f"{path}: {what} is written, not {named}; choose another name")


def save_plot(path: Path | None, figure: Callable[[], Any]) -> None:
    """Write the figure that a function makes, where a plot is wanted."""
    if path is None:
        return
    from matplotlib import rc_context

    content = io.BytesIO()
    format = path.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if format == "svg" else None  # the same figure is the same file
    with rc_context({"svg.hashsalt": "structsvm-papk"}):
        figure().savefig(content, format=format, dpi=150, metadata=metadata)
    write_atomically(path, content.getvalue())
    console.note(f"plot written to {path}")
