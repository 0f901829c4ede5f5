"""Mutated tables for every reader: each must be parsed or refused with `InputError`, nothing else.

    python tests/stress/fuzz_readers.py --problems 500 --seconds 3600

A problem is a batch of 2,000 files of one kind. It is read in a process of its own, with a limit on
memory and a clock for each file, so that a crash, a hang or an allocation without bound is a result
and not the end of the run. The file on which a batch ends is kept.
"""

import io
import re
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from searching import main

from structsvm_papk.errors import InputError
from structsvm_papk.files.readers import read_table
from structsvm_papk.files.trec import JUDGMENTS, RUN, read_lines
from structsvm_papk.fusion import join_lists

_MEMORY = 4 << 30  # bytes of address space above what the worker starts with
_SECONDS = 20  # of one file
_SVMLIGHT = b"""# comment
2 qid:7 1:0.5 3:-1.25e-3 # note
0 qid:7 2:4

1 qid:9 1:1
0 qid:9 3:2
"""
_BARE = b"1 1:0.5 2:3\n0 2:4\n1 1:1\n0 2:2\n"
_CSV = b'label,group,a,"b c"\n1,u1,0.5,2\n0,u1,-1e3,4\n1,"u,2",1,1\n0,"u,2",0,3\n'
_RUN = b"q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1.5 t\nq2 Q0 c 1 3 t\nq2 Q0 a 2 -1e-3 t\n"
_JUDGED = b"q1 0 b 1\nq1 0 e 1\nq2 0 c 2\nq2 0 a 0\n"
_TOKENS = [
    *b"0 -0 1 -1 1e308 1e309 -1e309 5e-324 nan inf -inf 0x10 1_0 1,2 1:1:1 -5:1".split(),
    *b"2147483646 2147483647 4294967297 9223372036854775807 true False label".split(),
    *b"# : :: qid: qid:-3 , ,,".split(),
    *[b"9" * 30, b"9" * 5000, b"x" * 2000, b"qid:1 qid:2", b"", b'"', b'""', b" ", b"\t", b"\r"],
    *[b"\r\n", b"\n\n", b"\0", b"\x0c", b"\xd9\xa1", b"\xff\xfe", b"\xed\xa0", b"\xef\xbb\xbf"],
]


def mutated(rng, content, others):
    """Apply a few random edits to the bytes of a file."""
    for _ in range(min(5, rng.geometric(0.6))):
        lo = int(rng.integers(0, len(content) + 1))
        length = int(rng.integers(0, 1 + rng.choice([1, 4, 32, 400])))
        before, middle, after = content[:lo], content[lo : lo + length], content[lo + length :]
        token = _TOKENS[rng.integers(0, len(_TOKENS))]
        other = others[rng.integers(0, len(others))]
        words = [*re.split(rb"([ ,:\n\t])", content[:2000]), content[2000:]]
        words[rng.integers(0, len(words))] = token  # for a word or what stands between words
        edits = (
            before + rng.bytes(len(middle)) + after,
            before + middle * int(rng.integers(0, 9)) + after,
            before + other[int(rng.integers(0, len(other))) :],
            before + token + middle + after,
            b"".join(words),
        )
        content = edits[rng.integers(0, len(edits))]
        content = content[:100_000]
    return content


def _parquet(codec):
    columns = {"label": [1, 0, 1, 0], "group": ["u", "u", "v", "v"], "a": [0.5, 1, 2, 3]}
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out, compression=codec)
    return out.getvalue()


KINDS = {  # the name of a file, which says how it is read, and sound ones to begin with
    "svmlight": ("rows.txt", (_SVMLIGHT, _BARE)),
    "csv": ("rows.csv", (_CSV, _CSV.replace(b"label", b"a", 1))),
    "parquet": ("rows.parquet", [_parquet(codec) for codec in ("none", "snappy", "zstd")]),
    "run": ("lists.run", (_RUN, _JUDGED)),
    "judgments": ("lists.qrels", (_JUDGED, _RUN)),
}


def read(rng, path):
    """What was read must be usable: consistent shapes, finite values; then make ranking data."""
    if path.suffix in (".run", ".qrels"):
        run = path if path.suffix == ".run" else {"q1": {"b": 1.0}}
        judged = path if path.suffix == ".qrels" else {"q1": {"b": 1}}
        each = read_lines(path, RUN if path.suffix == ".run" else JUDGMENTS)
        assert np.isfinite(each.iloc[:, 2]).all()
        join_lists({"x": run, "y": {"q1": {"a": 1.0}}}, judged)
        return
    table = read_table(path)
    n_rows = table.X.shape[0]
    stored = table.X.data if hasattr(table.X, "indptr") else table.X
    assert np.isfinite(stored).all()
    assert table.labels.shape == (n_rows,) and np.isfinite(table.labels).all()
    assert table.groups is None or table.groups.shape == (n_rows,)
    data = table.ranking_data(None if rng.random() < 0.2 else 1.0, one_list=rng.random() < 0.3)
    assert data.indptr[-1] == n_rows


# ---- the search


def work(kind, seed, folder, n_files):
    """A batch in this process; what was counted. The first failure ends it."""
    rng, counts, (name, sound) = np.random.default_rng(seed), Counter(), KINDS[kind]
    path = folder / name
    here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (here + _MEMORY, here + _MEMORY))
    for _ in range(n_files):
        path.write_bytes(mutated(rng, sound[rng.integers(len(sound))], sound))
        signal.alarm(_SECONDS)
        try:
            with warnings.catch_warnings(action="ignore"):  # of queries that are left out
                read(rng, path)
            counts[f"{kind}: parsed"] += 1
        except InputError:
            counts[f"{kind}: refused"] += 1
        signal.alarm(0)
    return counts


def check(seed, report, only=None, n_files=2000):
    """One batch; its kind follows from the seed."""
    kind = only or list(KINDS)[seed % len(KINDS)]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-readers-"))
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            report.counts += pool.submit(work, kind, seed, folder, n_files).result()
            shutil.rmtree(folder)
        except Exception as error:  # of the reader, or the process has died
            report.problem = f"the file is in {folder}"
            report.add(type(error).__name__, kind, str(error.__cause__ or error)[-1000:])


if __name__ == "__main__":
    sys.exit(main(check, __doc__, list(KINDS), 500))
