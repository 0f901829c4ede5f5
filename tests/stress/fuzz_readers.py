"""Mutated files for every reader: each must be parsed or refused with `InputError`, nothing else.

    python tests/stress/fuzz_readers.py --inputs 1000000 --seconds 600

Workers are processes of their own, with a limit on memory and a clock for each input, so that a
crash, a hang or an allocation without bound is a result and not the end of the run. The input that
a worker failed on is kept, and the run ends with status 1.
"""

import argparse
import gzip
import hashlib
import io
import json
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from structsvm_papk.errors import InputError

_MEMORY = 4 << 30  # bytes of address space above what the worker starts with
_SECONDS_PER_INPUT = 20
_SVMLIGHT = b"""# comment
2 qid:7 1:0.5 3:-1.25e-3 # note
0 qid:7 2:4

1 qid:9 1:1
0 qid:9 3:2
"""
_BARE = b"1 1:0.5 2:3\n0 2:4\n1 1:1\n0 2:2\n"
_CSV = b'label,group,a,"b c"\n1,u1,0.5,2\n0,u1,-1e3,4\n1,"u,2",1,1\n0,"u,2",0,3\n'
_TOKENS = [
    *b"0 -0 1 -1 1e308 1e309 -1e309 5e-324 nan inf -inf 0x10 1_0 1,2 1:1:1 -5:1".split(),
    *b"2147483646 2147483647 4294967297 9223372036854775807 true False label".split(),
    *b"# : :: qid: qid:-3 , ,,".split(),
    *[b"9" * 30, b"9" * 5000, b"x" * 2000, b"qid:1 qid:2", b"", b'"', b'""', b" ", b"\t", b"\r"],
    *[b"\r\n", b"\n\n", b"\0", b"\x0c", b"\xd9\xa1", b"\xff\xfe", b"\xed\xa0", b"\xef\xbb\xbf"],
]
_VALUES = [
    *[None, True, False, 0, 1, -1, 10**30, 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf")],
    *["", "a", "\ud800", "\0", [], [1], ["a"], ["a"] * 3, {}, {"a": 1}, [[[]]], "x" * 5000],
]


def mutated(rng, content, others):
    """Apply a few random edits to the bytes of a file."""
    for _ in range(min(5, rng.geometric(0.6))):
        size = len(content)
        lo = int(rng.integers(0, size + 1))
        hi = min(size, lo + int(rng.integers(0, 1 + rng.choice([1, 4, 32, 400]))))
        edit = rng.integers(0, 8)
        if edit == 0 and size:  # flip a bit
            at = min(lo, size - 1)
            flipped = bytes([content[at] ^ (1 << int(rng.integers(0, 8)))])
            content = content[:at] + flipped + content[at + 1 :]
        elif edit == 1:
            content = content[:lo] + content[hi:]
        elif edit == 2:
            content = content[:lo] + rng.bytes(hi - lo) + content[hi:]
        elif edit == 3:
            content = content[:hi] + content[lo:hi] * int(rng.integers(1, 9)) + content[hi:]
        elif edit == 4:
            content = content[:lo]
        elif edit == 5:
            other = others[rng.integers(0, len(others))]
            content = content[:lo] + other[int(rng.integers(0, len(other))) :]
        else:  # put a telling token in, where possible in place of another one
            pieces = _split_keeping(content) if edit == 6 else None
            token = _TOKENS[rng.integers(0, len(_TOKENS))]
            if pieces:
                pieces[rng.integers(0, len(pieces))] = token
            content = b"".join(pieces) if pieces else content[:lo] + token + content[lo:]
        content = content[:100_000]
    return content


def _split_keeping(content):
    """Words and what stands between them."""
    return [*re.split(rb"([ ,:\n\t])", content[:2000]), content[2000:]]


class Svmlight:
    """svmlight text, at times compressed, at times with a file of counts beside it."""

    seeds = (_SVMLIGHT, _BARE)

    def write(self, rng, folder):
        packed = rng.random() < 0.1
        path = folder / ("rows.txt.gz" if packed else "rows.txt")
        content = self.seeds[rng.integers(0, 2)]
        sidecar = rng.random() < 0.2
        if not sidecar or rng.random() < 0.5:
            content = mutated(rng, content, self.seeds)
        if packed:
            content = gzip.compress(content, 1)
            if rng.random() < 0.5:
                content = mutated(rng, content, self.seeds)
        path.write_bytes(content)
        counts = folder / f"{path.name}.query"
        counts.unlink(missing_ok=True)
        if sidecar:
            counts.write_bytes(mutated(rng, b"2\n2\n", [b"999999999999999999\n" * 19, b"1\n3\n"]))
        return path

    def read(self, rng, path):
        from structsvm_papk.data.readers import read_table

        return check_table(rng, read_table(path))


class Text(Svmlight):
    """CSV with a header."""

    seeds = (_CSV, _CSV.replace(b"label", b"a", 1))

    def write(self, rng, folder):
        path = folder / "rows.csv"
        path.write_bytes(mutated(rng, self.seeds[0], self.seeds))
        return path


class Parquet(Svmlight):
    """Parquet: damaged bytes, and sound files of unsuitable columns."""

    def __init__(self):
        import pyarrow as pa
        from pyarrow import parquet

        self.pa, self.parquet = pa, parquet
        columns = {"label": [1, 0, 1, 0], "group": ["u", "u", "v", "v"], "a": [0.5, 1, 2, 3]}
        self.seeds = tuple(self.encoded(columns, codec) for codec in ("none", "snappy", "zstd"))

    def encoded(self, columns, codec):
        out = io.BytesIO()
        self.parquet.write_table(self.pa.table(columns), out, compression=codec)
        return out.getvalue()

    def write(self, rng, folder):
        path = folder / "rows.parquet"
        if rng.random() < 0.3:
            path.write_bytes(self.encoded(self.odd_columns(rng), "none"))
        else:
            path.write_bytes(mutated(rng, self.seeds[rng.integers(0, 3)], self.seeds))
        return path

    def odd_columns(self, rng):
        times = [np.datetime64("2020", "s")] * 4, [np.timedelta64(1, "s")] * 4
        choices = [
            *[[1, 0, 1, 0], [0.5, 1.0, float("nan"), 2.0], [1, None, 0, 0], [None] * 4, ["1"] * 4],
            *[["u", "u", "v", ""], [b"\xff", b"", b"a", b"b"], [True, False, True, False]],
            *[[[1], [], [2], [3]], [{"a": 1}] * 4, [2**63 - 1, 1, 0, -(2**63)], [1e308] * 4],
            *[*times, ["x" * 5000, "", "a", "b"]],
        ]
        names = ["label", "group", "a", "b", "", "\u00e9"]
        used = rng.permutation(len(names))[: rng.integers(0, 5)]
        return {
            names[i]: self.pa.array(choices[rng.integers(0, len(choices))]) for i in sorted(used)
        }


class ModelFile:
    """Model files: damaged bytes, and sound ones of nonsensical entries with a right checksum."""

    def __init__(self):
        from structsvm_papk.files.model import Model, save_model

        certificate = {"objective": 0.5, "lower_bound": 0.4, "gap": 0.1}
        certificate |= {"status": "converged", "converged": True, "n_iter": 3}
        model = Model(np.array([1.0, -2.0]), 3, "ts", 0.1, "cutting_plane", certificate)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m"
            save_model(path, model)
            self.seeds = (path.read_bytes(),)

    def write(self, rng, folder):
        path = folder / "m.model"
        if rng.random() < 0.6:
            path.write_bytes(mutated(rng, self.seeds[0], self.seeds))
        else:
            path.write_bytes(self.signed_nonsense(rng))
        return path

    def signed_nonsense(self, rng):
        (length,) = struct.unpack_from("<Q", self.seeds[0])
        header, array = json.loads(self.seeds[0][8 : 8 + length]), self.seeds[0][8 + length :]
        description = json.loads(header["__metadata__"]["model"])
        where = [header, header["__metadata__"], header["coef"]]
        where += [description, description, description["certificate"]]
        for _ in range(rng.integers(1, 3)):
            target = where[rng.integers(0, len(where))]
            target[list(target)[rng.integers(0, len(target))]] = _VALUES[
                rng.integers(0, len(_VALUES))
            ]
        if isinstance(header.get("__metadata__"), dict) and rng.random() < 0.9:
            text = json.dumps(description)
            digest = hashlib.sha256(text.encode() + b"\0" + array).hexdigest()
            header["__metadata__"] |= {"model": text, "sha256": digest}
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + array

    def read(self, rng, path):
        from structsvm_papk.files.model import load_model

        model = load_model(path)
        assert model.k >= 1 and np.isfinite(model.alpha) and np.isfinite(model.coef).all()
        assert model.feature_names is None or len(model.feature_names) == model.n_features


def check_table(rng, table):
    """What was parsed must be usable: consistent shapes, finite values; then make ranking data."""
    n_rows = table.X.shape[0]
    stored = table.X.data if hasattr(table.X, "indptr") else table.X
    assert np.isfinite(stored).all()
    assert table.labels.shape == (n_rows,) and np.isfinite(table.labels).all()
    assert table.groups is None or table.groups.shape == (n_rows,)
    data = table.ranking_data(None if rng.random() < 0.2 else 1.0, one_list=rng.random() < 0.3)
    assert data.indptr[-1] == n_rows


KINDS = {"svmlight": Svmlight, "csv": Text, "parquet": Parquet, "model": ModelFile}


def work(kind, seed, n_inputs, folder):
    """Fuzz in this process; print the counts as JSON, keep what failed."""
    rng, fuzzer, counts = np.random.default_rng(seed), KINDS[kind](), Counter()
    here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (here + _MEMORY, here + _MEMORY))
    for number in range(n_inputs):
        path = fuzzer.write(rng, folder)
        signal.alarm(_SECONDS_PER_INPUT)
        try:
            fuzzer.read(rng, path)
            counts["parsed"] += 1
        except InputError:
            counts["refused"] += 1
        except BaseException:
            counts["failed"] += 1
            keep(folder, path, f"{kind}-{seed}-{number}", traceback.format_exc())
        signal.alarm(0)
    counts["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps(counts))


def keep(folder, path, name, reason):
    target = folder.parent / "failures" / name
    target.mkdir(parents=True, exist_ok=True)
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, target)
    (target / "reason.txt").write_text(reason)


def run_batch(kind, seed, n_inputs, root):
    """One worker process; its death is a failure too."""
    folder = Path(root) / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-W", "ignore", __file__, "--worker", kind]
    command += ["--seed", str(seed), "--inputs", str(n_inputs), "--keep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return Counter(json.loads(done.stdout))
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    if files:
        keep(folder, files[-1], f"{kind}-{seed}-died", f"{done.returncode}\n{done.stderr[-4000:]}")
    return Counter({"failed": 1})


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="over all kinds")
    parser.add_argument("--seconds", type=float, default=600, help="start no batch after this")
    parser.add_argument("--batch", type=int, default=20_000, help="inputs of one process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for failures (a temporary one)")
    parser.add_argument("--worker", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(options.worker, options.seed, options.inputs, options.keep)
        return 0
    root = options.keep or Path(tempfile.mkdtemp(prefix="fuzz-readers-"))
    started, totals, seed = time.perf_counter(), {kind: Counter() for kind in KINDS}, options.seed
    left = dict.fromkeys(KINDS, options.inputs // len(KINDS))
    while any(left.values()) and time.perf_counter() - started < options.seconds:
        for kind in [kind for kind in KINDS if left[kind]]:
            size = min(options.batch, left[kind])
            counts = run_batch(kind, seed, size, root)
            peak = max(totals[kind]["peak MB"], counts.pop("peak MB", 0))
            totals[kind] += counts
            totals[kind]["peak MB"] = peak
            left[kind], seed = left[kind] - size, seed + 1
    print(json.dumps(totals, indent=1))
    n_failed = sum(counts["failed"] for counts in totals.values())
    print(f"{n_failed} failures: inputs and reasons in {root / 'failures'}")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
