"""The version of the package, the commit that it was made from, and what it works with."""

import subprocess
from pathlib import Path

__version__ = "0.2.0"

_USED = (
    *("numpy", "scipy", "numba", "cvxpy", "scikit-learn", "pandas", "piqp"),
    *("rich", "typer", "safetensors", "threadpoolctl", "dask", "distributed", "matplotlib"),
    *("polars", "pyarrow", "onnx", "lightgbm"),
)


def commit() -> str | None:
    """The commit that the package was built from, or that is checked out; None if unknown.

    A build stores it (`tools/commit_hook.py`). Changes that are not committed are not seen.
    """
    built = Path(__file__).with_name("_commit")
    if built.is_file():
        return built.read_text(encoding="ascii").strip()
    return head_of(Path(__file__).parents[1] / ".git")


def head_of(git: Path) -> str | None:
    """The commit at the head of a repository, as git says; None where there is none, or no git."""
    if not git.exists():
        return None
    asked = ["git", f"--git-dir={git}", "rev-parse", "--verify", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """Versions of this package and of those that it works with, where they are installed."""
    from importlib import metadata

    installed = {"structsvm-papk": __version__}
    for name in _USED:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed
