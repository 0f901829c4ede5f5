"""Files of arrays in the safetensors layout: a JSON description, a checksum, nothing executable.

A file is ``u64 length | JSON header | little-endian arrays``, so any safetensors reader opens it.
The header's ``__metadata__`` carries the description and a SHA-256 of all bytes of the file, with
zeros in place of its own digits. Reading trusts no stated size: the header is read first, and the
arrays only where the file is as long as it says.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from safetensors.numpy import save

from structsvm_papk._types import Array, PathLike
from structsvm_papk.errors import InputError, as_path

_LENGTH = struct.Struct("<Q")
_NO_DIGEST = b"0" * 64
_MOST_HEADER = 100_000_000  # bytes, as safetensors has it
_DTYPES = {"F64": "<f8", "I64": "<i8"}


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
            with open(path, "rb") as file:
                return self._read(path, file, path.stat().st_size)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None

    def _read(
        self, path: PathLike, file: BinaryIO, n_bytes: int
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        header = self._header(path, file, n_bytes)
        try:
            layout = json.loads(header)
            metadata = layout.pop("__metadata__")
            if metadata["format"] != self.format:
                raise self._foreign(path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._foreign(path) from None
        if metadata.get("format_version") != str(self.version):
            raise InputError(
                f"{path} has {self.kind} format {str(metadata.get('format_version'))[:20]}, this "
                f"version reads format {self.version}: train again, or use the version that wrote "
                "it"
            )
        try:
            places = _places(layout)
        except (ValueError, KeyError, TypeError) as error:
            reason = f"the stated size or type of an array is wrong ({error})"
            raise self.damaged(path, reason) from None
        n_stated = sum(place.n_bytes for place in places)
        n_there = n_bytes - file.tell()
        if n_stated != n_there:
            raise self.damaged(path, f"its arrays have {n_there} bytes, {n_stated} are stated")
        body = file.read(n_there)
        digest = str(metadata.get("sha256"))
        if digest != _digest(header.replace(digest.encode(), _NO_DIGEST), body):
            raise self.damaged(path, "the checksum does not match")
        return self._description(path, metadata), {each.name: each.array(body) for each in places}

    def _header(self, path, file, n_bytes):
        """The header; where the file begins as none of this kind does, no more of it is read."""
        begin = json.dumps({"__metadata__": {"format": self.format}}).encode()[:-2]
        length = file.read(_LENGTH.size)
        beginning = file.read(len(begin))
        if len(length) < _LENGTH.size or beginning != begin:
            raise self._foreign(path)
        n_header = _LENGTH.unpack(length)[0]
        if not len(begin) <= n_header <= min(_MOST_HEADER, n_bytes - _LENGTH.size):
            raise self._foreign(path)
        return beginning + file.read(n_header - len(begin))

    def damaged(self, path: PathLike, reason: str) -> InputError:
        """The error of a damaged file."""
        return InputError(f"{path} is damaged: {reason}")

    def _description(self, path, metadata):
        try:
            description = json.loads(metadata[self.kind])
        except (KeyError, TypeError, ValueError, RecursionError):
            raise self.damaged(path, "its description is not JSON") from None
        if not isinstance(description, dict):
            raise self.damaged(path, "its description is not an object")
        return description

    def _foreign(self, path):
        return InputError(
            f"{path} is not a structsvm-papk {self.kind} file, or its beginning is damaged"
        )


@dataclass(frozen=True)
class _Place:
    """Where an array stands among the bytes of all of them."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int

    @classmethod
    def of(cls, name: str, entry: Mapping[str, Any]) -> _Place:
        start, end = entry["data_offsets"]
        place = cls(name, _DTYPES[entry["dtype"]], tuple(entry["shape"]), start)
        numbers = (*place.shape, start, end)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"{name}: sizes must be whole numbers of at least 0")
        if end - start != place.n_bytes:
            raise ValueError(f"{name}: {end - start} bytes for the shape {place.shape}")
        return place

    @property
    def n_bytes(self) -> int:
        """Of the array."""
        return 8 * math.prod(self.shape)

    def array(self, body: bytes) -> Array:
        """The array, of its own memory."""
        n_values = math.prod(self.shape)
        values = np.frombuffer(body, self.dtype, n_values, self.start)
        return values.reshape(self.shape).astype(self.dtype[1:])


def _places(layout: Mapping[str, Any]) -> list[_Place]:
    """Where the arrays stand: one begins where the one before ends."""
    places = [_Place.of(name, entry) for name, entry in layout.items()]
    end = 0
    for place in sorted(places, key=lambda place: place.start):
        if place.start != end:
            raise ValueError(f"{place.name} does not begin where the array before ends")
        end += place.n_bytes
    return places


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
