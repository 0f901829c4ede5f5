"""The version of the package, and of what it works with."""

__version__ = "0.2.0"

_USED = (
    *("numpy", "scipy", "numba", "cvxpy", "scikit-learn", "pandas", "piqp"),
    *("rich", "typer", "safetensors", "threadpoolctl", "dask", "distributed", "matplotlib"),
    *("polars", "pyarrow", "rectools", "onnx", "lightgbm"),
)


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


def show_versions() -> None:
    """Print the versions that a bug report needs: system, Python, this package, what it uses."""
    import platform

    print(f"{'python':16} {platform.python_version()} on {platform.platform()}")
    for name, version in versions().items():
        print(f"{name:16} {version}")
