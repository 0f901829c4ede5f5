"""Files of arrays in the safetensors layout: a JSON description, a checksum, nothing executable.

A file is ``u64 length | JSON header | little-endian arrays``, so any safetensors reader opens it.
The header's ``__metadata__`` carries the description and a SHA-256 over description and arrays.
Reading trusts no stated size: safetensors compares everything with the file's own length first.
"""

from __future__ import annotations

import hashlib
import json
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from structsvm_papk._types import Array, PathLike
from structsvm_papk.errors import InputError, as_path


@dataclass(frozen=True)
class TensorFile:
    """One kind of file: `kind` says what it holds, and is the description's key in the header."""

    kind: str
    version: int

    @property
    def format(self) -> str:
        """The name of the format in the header."""
        return f"structsvm_papk {self.kind}"

    def encoded(self, description: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
        """The bytes of a file: a description that JSON can say, and numbers, kept with 64 bits."""
        text = json.dumps(description, allow_nan=False)
        stored = {}
        for name, array in arrays.items():
            dtype = np.int64 if array.dtype.kind in "iu" else np.float64
            stored[name] = np.asarray(array, dtype, order="C")
        metadata = {"format": self.format, "format_version": str(self.version), self.kind: text}
        layout, body = _split(save(stored))
        metadata["sha256"] = checksum(text, body)
        # safetensors would write the metadata in an order that changes from file to file
        header = json.dumps({"__metadata__": metadata, **json.loads(layout)}).encode()
        header += b" " * (-len(header) % 8)  # the arrays begin at a multiple of 8 bytes
        return struct.pack("<Q", len(header)) + header + body

    def read(self, path: PathLike) -> tuple[dict[str, Any], dict[str, Array]]:
        """The description, a dict, and the arrays of a file."""
        content = _content(path)
        try:
            header, body = _split(content)
            metadata = json.loads(header)["__metadata__"]
        except (ValueError, KeyError, TypeError, RecursionError, struct.error):
            raise self._foreign(path) from None
        description = self._checked_metadata(path, metadata, body)
        try:
            arrays = load(content)
        except (SafetensorError, KeyError, ValueError) as error:  # KeyError: a type without numpy's
            reason = f"the stated size or type of an array is wrong ({error})"
            raise self.damaged(path, reason) from None
        if any(array.dtype not in (np.float64, np.int64) for array in arrays.values()):
            raise self.damaged(path, "an array is not of 64 bits")
        return description, arrays

    def damaged(self, path: PathLike, reason: str) -> InputError:
        """The error of a damaged file."""
        return InputError(f"{path} is damaged: {reason}")

    def _checked_metadata(self, path, metadata, body):
        if not isinstance(metadata, dict) or metadata.get("format") != self.format:
            raise self._foreign(path)
        if metadata.get("format_version") != str(self.version):
            raise InputError(
                f"{path} has {self.kind} format {str(metadata.get('format_version'))[:20]}, this "
                f"version reads format {self.version}: train again, or use the version that wrote "
                "it"
            )
        text = metadata.get(self.kind)
        if not isinstance(text, str) or metadata.get("sha256") != checksum(text, body):
            raise self.damaged(path, "the checksum does not match")
        try:
            description = json.loads(text)
        except (ValueError, RecursionError):
            raise self.damaged(path, "its description is not JSON") from None
        if not isinstance(description, dict):
            raise self.damaged(path, "its description is not an object")
        return description

    def _foreign(self, path):
        return InputError(
            f"{path} is not a structsvm-papk {self.kind} file, or its beginning is damaged"
        )


def checksum(description: str, body: bytes) -> str:
    """SHA-256 over a description, as text, and the bytes of the arrays."""
    # half a surrogate pair, which JSON can spell, has no UTF-8: it must not match, not crash
    text = description.encode(errors="backslashreplace")
    return hashlib.sha256(text + b"\0" + body).hexdigest()


def _split(content: bytes) -> tuple[bytes, bytes]:
    """The header of a file, and the bytes of its arrays."""
    end = 8 + struct.unpack_from("<Q", content)[0]
    return content[8:end], content[end:]


def _content(path):
    path = as_path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"cannot read {path}: it is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
