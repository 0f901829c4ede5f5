"""Build hook of hatchling: what is built says which commit it was built from, in `_commit`."""

import runpy
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PLACE = "structsvm_papk/_commit"


class CommitHook(BuildHookInterface):
    """Adds the file, unless an sdist, which has no repository, holds it already."""

    def initialize(self, version, build_data):
        """Write the commit beside what is built; an editable install reads the repository."""
        root = Path(self.root)
        commit = runpy.run_path(str(root / "structsvm_papk" / "_version.py"))["head_of"](
            root / ".git"
        )
        if version == "editable" or commit is None:
            return
        self.written = Path(self.directory) / "commit"
        self.written.parent.mkdir(parents=True, exist_ok=True)
        self.written.write_text(f"{commit}\n", encoding="ascii")
        build_data["force_include"][str(self.written)] = _PLACE

    def finalize(self, version, build_data, artifact):
        """Remove what was written."""
        if hasattr(self, "written"):
            self.written.unlink(missing_ok=True)
