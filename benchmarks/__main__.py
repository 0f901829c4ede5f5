"""One way to run what is measured here.

python -m benchmarks              what there is
python -m benchmarks NAME [..]    run it; `--help` says its options
"""

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    names = found()
    if len(sys.argv) < 2:
        width = max(map(len, names))
        for name, file in names.items():
            print(
                f"{name:{width}}  {ast.get_docstring(ast.parse(file.read_text())).splitlines()[0]}"
            )
        return 0
    name = sys.argv.pop(1).removesuffix(".py")
    if name not in names:
        print(f"no benchmark {name!r}: {', '.join(names)}", file=sys.stderr)
        return 2
    sys.path[:0] = [str(HERE), str(HERE.parent)]  # scripts import each other, and packages here
    sys.argv[0] = f"python -m benchmarks {name}"
    if names[name].name == "__init__.py":
        runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(names[name]), run_name="__main__")
    return 0


def found():
    """What can be run, by name: the file whose first line says what it is."""
    scripts = {
        file.stem: file
        for file in sorted(HERE.glob("[a-z]*.py"))
        if '\nif __name__ == "__main__":' in file.read_text()
    }
    packages = {
        file.parent.name: file.parent / "__init__.py" for file in sorted(HERE.glob("*/__main__.py"))
    }
    return packages | scripts


if __name__ == "__main__":
    sys.exit(main())
