"""One way to run what is measured here.

python -m benchmarks              what there is, in groups
python -m benchmarks NAME [..]    run it; `--help` says its options
"""

import ast
import os
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GROUPS = ("speed", "quality", "certificate", "paper", "studies")  # folders
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main():
    if len(sys.argv) < 2:
        print_index()
        return 0
    modules = {name: module for group in GROUPS for name, module in runnable(group).items()}
    name = sys.argv.pop(1).removesuffix(".py")
    if name not in modules:
        print(f"no benchmark {name!r}: {', '.join(modules)}", file=sys.stderr)
        return 2
    for variable in ONE_THREAD:  # read when numpy is loaded, which is later, and by processes
        os.environ.setdefault(variable, "1")
    sys.stdout.reconfigure(line_buffering=True)  # a line of a long run is seen when it is known
    sys.argv[0] = f"python -m benchmarks {name}"
    runpy.run_module(modules[name], run_name="__main__")
    return 0


def runnable(group):
    """Modules by name: the folder itself where it has commands, otherwise each of its scripts."""
    if (HERE / group / "__main__.py").exists():
        return {group: f"benchmarks.{group}"}
    return {
        file.stem: f"benchmarks.{group}.{file.stem}"
        for file in sorted((HERE / group).glob("[a-z]*.py"))
        if '\nif __name__ == "__main__":' in file.read_text()
    }


def print_index():
    for group in GROUPS:
        print(f"\n{first_line(parsed(HERE / group / '__init__.py'))}")
        rows = dict(described(group))
        width = max(map(len, rows))
        for name, description in rows.items():
            print(f"  {name:{width}}  {description}")


def described(group):
    """What can be run in a group, and what it is; of commands each."""
    commands = HERE / group / "__main__.py"
    if not commands.exists():
        for name in runnable(group):
            yield name, first_line(parsed(HERE / group / f"{name}.py"))
        return
    for node in parsed(commands).body:
        if isinstance(node, ast.FunctionDef) and is_command(node):
            yield f"{group} {node.name.replace('_', '-')}", first_line(node)


def is_command(function):
    return any(ast.unparse(line).startswith("app.command(") for line in function.decorator_list)


def parsed(file):
    return ast.parse(file.read_text())


def first_line(node):
    return ast.get_docstring(node).splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
