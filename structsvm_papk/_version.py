"""The version of the package, the commit that it was made from, and what it works with."""

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
    """The commit at the head of a repository, read from its files; None where there is none."""
    try:
        if git.is_file():  # of a second working tree
            git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        places = [git]
        if (git / "commondir").is_file():
            places.append(git / (git / "commondir").read_text(encoding="utf-8").strip())
        for place in places:
            if (place / name).is_file():
                return (place / name).read_text(encoding="utf-8").strip()
        packed = (places[-1] / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
    except OSError:
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
