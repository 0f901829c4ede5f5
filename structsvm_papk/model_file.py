"""Model files: the safetensors layout, one array and a JSON description, nothing executable.

A file is ``u64 length | JSON header | little-endian array``, so any safetensors reader opens it.
The header's ``__metadata__`` carries the description and a SHA-256 over description and array.
Reading trusts no stated size: everything is compared with the file's own length first.
"""

import hashlib
import json
import math
import stat
import struct
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from structsvm_papk.errors import InputError
from structsvm_papk.outputs import write_atomically

FORMAT = "structsvm_papk model"
FORMAT_VERSION = 1
_LARGEST_HEADER = 100_000_000  # the limit of the safetensors layout


@dataclass(frozen=True)
class Model:
    """A trained linear ranker: a row scores ``x . coef``; no intercept, ranking ignores it.

    Attributes
    ----------
    coef : ndarray of float64, shape (n_features,)
    k : int
        Number of recommended items that it was trained for.
    surrogate, solver : str
        By name.
    alpha : float
        Regularisation strength.
    certificate : dict
        objective, lower_bound (None: not known), gap (None: not known), status, converged, n_iter.
    feature_names : tuple of str, or None
        Columns, where the training data named them.
    first_index : int or None
        svmlight index of the first feature, where the training data was svmlight.
    relevance_threshold : float or None
        Labels of at least this were relevant; None: the labels were binary.
    package_version : str
        The version that wrote the file.
    """

    coef: np.ndarray
    k: int
    surrogate: str
    alpha: float
    solver: str
    certificate: dict
    feature_names: tuple | None = None
    first_index: int | None = None
    relevance_threshold: float | None = None
    package_version: str = ""

    @property
    def n_features(self):
        """Length of coef."""
        return self.coef.size


def certificate_of(result):
    """What a `SolverResult` proves, as plain values: infinities become None."""
    return {
        "objective": float(result.objective),
        "lower_bound": _finite_or_none(result.lower_bound),
        "gap": _finite_or_none(result.gap),
        "status": str(result.status),
        "converged": bool(result.converged),
        "n_iter": int(result.n_iter),
    }


def _finite_or_none(value):
    return float(value) if math.isfinite(value) else None


def save_model(path, model):
    """Write a `Model`; an existing file is replaced in one step or kept.

    Raises
    ------
    InputError
        The path cannot be written.
    """
    write_atomically(path, _encoded(model))


def load_model(path):
    """Read a `Model`.

    Raises
    ------
    InputError
        The file cannot be read, is no model file, is damaged, or of a later format.
    """
    header, array = _split(path, _content(path))
    description = _checked_metadata(path, header.get("__metadata__"), array)
    coef = _checked_coef(path, header.get("coef"), array)
    model = _model_from(path, description, coef)
    if model.feature_names is not None and len(model.feature_names) != coef.size:
        raise _damaged(path, f"{len(model.feature_names)} feature names, {coef.size} coefficients")
    return model


def _package_version():
    try:
        return version("structsvm-papk")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


def _encoded(model):
    coef = np.ascontiguousarray(model.coef, dtype="<f8")
    description = json.dumps(
        {
            "k": int(model.k),
            "surrogate": model.surrogate,
            "alpha": float(model.alpha),
            "solver": model.solver,
            "certificate": model.certificate,
            "feature_names": None if model.feature_names is None else list(model.feature_names),
            "first_index": model.first_index,
            "relevance_threshold": model.relevance_threshold,
            "package_version": model.package_version or _package_version(),
        },
        allow_nan=False,
    )
    array = coef.tobytes()
    header = {
        "__metadata__": {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "model": description,
            "sha256": _digest(description, array),
        },
        "coef": {"dtype": "F64", "shape": [coef.size], "data_offsets": [0, len(array)]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the array starts aligned
    return struct.pack("<Q", len(text)) + text + array


def _digest(description, array):
    # half a surrogate pair, which JSON can spell, has no UTF-8: it must not match, not crash
    text = description.encode(errors="backslashreplace")
    return hashlib.sha256(text + b"\0" + array).hexdigest()


def _content(path):
    path = Path(path)
    if "\0" in str(path):
        raise InputError(f"cannot read {str(path)!r}: the name holds a null character")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"cannot read {path}: it is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _split(path, content):
    """Header object and array bytes."""
    length = struct.unpack_from("<Q", content)[0] if len(content) >= 8 else 0
    if not 2 <= length <= min(len(content) - 8, _LARGEST_HEADER):
        raise _foreign(path)
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError):
        raise _foreign(path) from None
    if not isinstance(header, dict):
        raise _foreign(path)
    return header, content[8 + length :]


def _checked_metadata(path, metadata, array):
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise _foreign(path)
    if metadata.get("format_version") != str(FORMAT_VERSION):
        raise InputError(
            f"{path} has model format {str(metadata.get('format_version'))[:20]}, this version "
            f"reads format {FORMAT_VERSION}: upgrade structsvm-papk"
        )
    text = metadata.get("model")
    if not isinstance(text, str) or metadata.get("sha256") != _digest(text, array):
        raise _damaged(path, "the checksum does not match")
    try:
        description = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged(path, "its description is not JSON") from None
    if not isinstance(description, dict):
        raise _damaged(path, "its description is no object")
    return description


def _checked_coef(path, entry, array):
    expected = {
        "dtype": "F64",
        "shape": [len(array) // 8],
        "data_offsets": [0, len(array) // 8 * 8],
    }
    if entry != expected or len(array) % 8 or not array:
        raise _damaged(path, "the stated size of the coefficients is not the size of the file")
    coef = np.frombuffer(array, dtype="<f8").astype(np.float64)
    if not np.isfinite(coef).all():
        raise _damaged(path, "a coefficient is not finite")
    return coef


def _model_from(path, description, coef):
    try:
        return Model(
            coef=coef,
            k=_whole(description["k"], 1),
            surrogate=_a(str, description["surrogate"]),
            alpha=_strength(description["alpha"]),
            solver=_a(str, description["solver"]),
            certificate=_certificate_from(_a(dict, description["certificate"])),
            feature_names=_names_from(description.get("feature_names")),
            first_index=_optional(_whole, description["first_index"]),
            relevance_threshold=_optional(_number, description["relevance_threshold"]),
            package_version=_a(str, description["package_version"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"bad or missing entry ({error})") from None


def _certificate_from(entries):
    return {
        "objective": _number(entries["objective"]),
        "lower_bound": _optional(_number, entries["lower_bound"]),
        "gap": _optional(_number, entries["gap"]),
        "status": _a(str, entries["status"]),
        "converged": _a(bool, entries["converged"]),
        "n_iter": _whole(entries["n_iter"]),
    }


def _names_from(names):
    if names is None:
        return None
    names = tuple(_a(str, name) for name in _a(list, names))
    if len(set(names)) < len(names):
        raise ValueError("a feature name appears twice")
    return names


def _a(types, value):
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise TypeError(f"unexpected {type(value).__name__}")
    return value


def _whole(value, least=0):
    if not least <= _a(int, value) < 2**63:
        raise ValueError("a whole number is out of range")
    return value


def _number(value):
    value = float(_a((int, float), value))
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _strength(value):
    if not _number(value) >= 0:
        raise ValueError("a strength is negative")
    return float(value)


def _optional(check, value):
    return None if value is None else check(value)


def _foreign(path):
    return InputError(f"{path} is not a structsvm-papk model file, or its beginning is damaged")


def _damaged(path, reason):
    return InputError(f"{path} is damaged: {reason}")
