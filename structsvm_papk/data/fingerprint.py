"""Fingerprints: whether two problems are the same."""

import hashlib
from typing import Any

import numpy as np


def fingerprint_of(*parts: Any, chunk_bytes: int = 1 << 24) -> str:
    """SHA-256 over texts, whole numbers, and arrays, as 64 hexadecimal digits.

    Arrays count with dtype, shape and every value; whether they lie in rows or in columns makes no
    difference. They are read in pieces of `chunk_bytes`: nothing of their size is copied.
    """
    digest = hashlib.sha256()
    for part in parts:
        _add(digest, part, chunk_bytes)
    return digest.hexdigest()


def _add(digest, part, chunk_bytes):
    if isinstance(part, np.ndarray):
        digest.update(f"array {part.dtype.str} {part.shape};".encode())
        rows_at_once = max(1, chunk_bytes * len(part) // max(part.nbytes, 1))
        for first in range(0, len(part), rows_at_once):
            digest.update(np.ascontiguousarray(part[first : first + rows_at_once]))
    else:
        text = str(part).encode()
        # the length keeps "ab" and "c" apart from "a" and "bc"
        digest.update(f"{type(part).__name__} {len(text)};".encode() + text)
