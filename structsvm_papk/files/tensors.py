"""Files of arrays in the safetensors layout: a JSON description, a checksum, nothing executable.

A file is ``u64 length | JSON header | little-endian arrays``, so any safetensors reader opens it.
The header's ``__metadata__`` carries the description and a SHA-256 of all bytes of the file, with
zeros in place of its own digits. safetensors compares the sizes that a header states with the file;
the arrays are read only where the header is one of ours.
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
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from structsvm_papk._types import Array, PathLike
from structsvm_papk.errors import InputError, as_path

_LENGTH = struct.Struct("<Q")
_NO_DIGEST = b"0" * 64


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
        content = save(stored)
        end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        metadata = {"format": self.format, "format_version": str(self.version), self.kind: text}
        # safetensors would write the metadata in an order that changes from file to file
        header = {"__metadata__": metadata, **json.loads(content[_LENGTH.size : end])}
        return signed(header, content[end:])

    def read(self, path: PathLike) -> tuple[dict[str, Any], dict[str, Array]]:
        """The description, a dict, and the arrays of a file."""
        path = as_path(path)
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise InputError(f"cannot read {path}: it is not a regular file")
            with safe_open(path, "numpy") as file:
                self._check_format(path, file.metadata() or {})
            content = path.read_bytes()  # perhaps newer: a checkpoint is replaced while a fit runs
            arrays = load(content)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        except (SafetensorError, KeyError) as error:  # the latter: a type that numpy does not have
            raise InputError(
                f"{path} is not a structsvm-papk {self.kind} file, or is damaged: {error}"
            ) from None
        end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        metadata = json.loads(content[_LENGTH.size : end]).get("__metadata__", {})
        digest = metadata.get("sha256", "")
        header = content[_LENGTH.size : end].replace(digest.encode() or b"?", _NO_DIGEST)
        if digest != _digest(header, content[end:]):
            raise self.damaged(path, "the checksum does not match")
        return self._description(path, metadata), arrays

    def _check_format(self, path: PathLike, metadata: Mapping[str, str]) -> None:
        if metadata.get("format") != self.format:
            raise InputError(f"{path} is not a structsvm-papk {self.kind} file")
        version = metadata.get("format_version")
        if version != str(self.version):
            raise InputError(
                f"{path} has {self.kind} format {str(version)[:20]}, this version reads format "
                f"{self.version}: train again, or use the version that wrote it"
            )

    def damaged(self, path: PathLike, reason: str) -> InputError:
        """The error of a damaged file."""
        return InputError(f"{path} is damaged: {reason}")

    def _description(self, path: PathLike, metadata: Mapping[str, str]) -> dict[str, Any]:
        try:
            description = json.loads(metadata[self.kind])
        except (KeyError, TypeError, ValueError, RecursionError):
            raise self.damaged(path, "its description is not JSON") from None
        if not isinstance(description, dict):
            raise self.damaged(path, "its description is not an object")
        return description


def signed(header: Mapping[str, Any], body: bytes) -> bytes:
    """The bytes of a file with this header, but for its checksum, and this body."""
    metadata = header["__metadata__"] | {"sha256": _NO_DIGEST.decode()}
    text = json.dumps({**header, "__metadata__": metadata}).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8 bytes
    key = b'"sha256": "'  # the description, text within text, has its quotes escaped
    text = text.replace(key + _NO_DIGEST, key + _digest(text, body).encode())
    return _LENGTH.pack(len(text)) + text + body


def _digest(header: bytes, body: bytes) -> str:
    """SHA-256 of a file with zeros for its digest."""
    content = hashlib.sha256(_LENGTH.pack(len(header)) + header)
    content.update(body)
    return content.hexdigest()
