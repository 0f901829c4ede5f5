"""Files of arrays in the safetensors layout: a JSON description, a checksum, nothing executable.

A file is ``u64 length | JSON header | little-endian arrays``, so any safetensors reader opens it.
The header's ``__metadata__`` carries the description and a SHA-256 over description and arrays.
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

_LARGEST_HEADER = 100_000_000  # the limit of the safetensors layout
_DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}


@dataclass(frozen=True)
class TensorFile:
    """One kind of file: `kind` says what it holds, and is the description's key in the header."""

    kind: str
    version: int

    @property
    def format(self):
        """The name of the format in the header."""
        return f"structsvm_papk {self.kind}"

    def encoded(self, description, arrays):
        """The bytes of a file: a description that JSON can say, and numbers, kept with 64 bits."""
        text = json.dumps(description, allow_nan=False)
        header, blocks, end = {}, [], 0
        for name, array in arrays.items():
            dtype = "I64" if np.issubdtype(array.dtype, np.integer) else "F64"
            blocks.append(np.ascontiguousarray(array, dtype=_DTYPES[dtype]).tobytes())
            begin, end = end, end + len(blocks[-1])
            header[name] = {"dtype": dtype, "shape": [*array.shape], "data_offsets": [begin, end]}
        body = b"".join(blocks)
        metadata = {
            "format": self.format,
            "format_version": str(self.version),
            self.kind: text,
            "sha256": checksum(text, body),
        }
        head = json.dumps({"__metadata__": metadata, **header}).encode()
        head += b" " * (-len(head) % 8)  # the arrays start aligned
        return struct.pack("<Q", len(head)) + head + body

    def read(self, path):
        """The description, a dict, and the arrays of a file."""
        header, body = self._split(path, _content(path))
        description = self._checked_metadata(path, header.pop("__metadata__", None), body)
        return description, self._arrays(path, header, body)

    def damaged(self, path, reason):
        """The error of a damaged file."""
        return InputError(f"{path} is damaged: {reason}")

    def _split(self, path, content):
        """Header object and the bytes of the arrays."""
        length = struct.unpack_from("<Q", content)[0] if len(content) >= 8 else 0
        if not 2 <= length <= min(len(content) - 8, _LARGEST_HEADER):
            raise self._foreign(path)
        try:
            header = json.loads(content[8 : 8 + length])
        except (ValueError, RecursionError):
            raise self._foreign(path) from None
        if not isinstance(header, dict):
            raise self._foreign(path)
        return header, content[8 + length :]

    def _checked_metadata(self, path, metadata, body):
        if not isinstance(metadata, dict) or metadata.get("format") != self.format:
            raise self._foreign(path)
        if metadata.get("format_version") != str(self.version):
            raise InputError(
                f"{path} has {self.kind} format {str(metadata.get('format_version'))[:20]}, this "
                f"version reads format {self.version}: upgrade structsvm-papk"
            )
        text = metadata.get(self.kind)
        if not isinstance(text, str) or metadata.get("sha256") != checksum(text, body):
            raise self.damaged(path, "the checksum does not match")
        try:
            description = json.loads(text)
        except (ValueError, RecursionError):
            raise self.damaged(path, "its description is not JSON") from None
        if not isinstance(description, dict):
            raise self.damaged(path, "its description is no object")
        return description

    def _arrays(self, path, header, body):
        """The arrays; they have to fill the body without a gap."""
        arrays, end = {}, 0
        for name, entry in header.items():
            begin, end = end, end + _stated_size(entry)
            if end > len(body) or entry["data_offsets"] != [begin, end]:
                end = -1
                break
            dtype = _DTYPES[entry["dtype"]]
            array = np.frombuffer(body, dtype, (end - begin) // 8, begin)
            arrays[name] = array.astype(dtype.newbyteorder("=")).reshape(entry["shape"])
        if end != len(body):
            raise self.damaged(path, "the stated size of an array is not the size of the file")
        return arrays

    def _foreign(self, path):
        return InputError(
            f"{path} is not a structsvm-papk {self.kind} file, or its beginning is damaged"
        )


def package_version():
    """Version of this package."""
    try:
        return version("structsvm-papk")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


def checksum(description, body):
    """SHA-256 over a description, as text, and the bytes of the arrays."""
    # half a surrogate pair, which JSON can spell, has no UTF-8: it must not match, not crash
    text = description.encode(errors="backslashreplace")
    return hashlib.sha256(text + b"\0" + body).hexdigest()


def _stated_size(entry):
    """Bytes of an array; a size that no file has where the entry makes no sense."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return math.inf
    shape = entry["shape"]
    if entry["dtype"] not in ("F64", "I64") or not isinstance(shape, list) or len(shape) > 4:
        return math.inf
    if not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        return math.inf
    return 8 * math.prod(shape)


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
