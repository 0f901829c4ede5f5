"""The command ``structsvm-papk``: parses, calls, prints.

A module for each command, imported when the command is called; `program` lists them. Exit status:
0 done, 1 no result that holds (a solver did not reach its tolerance, no user could be evaluated),
2 wrong input, 3 an error of the program itself, 130 interrupted by Ctrl-C or SIGTERM.
"""

import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; no traceback reaches the user."""
    try:  # imports included: Ctrl-C may come while they run
        from structsvm_papk.cli import program

        return program.run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        print("Error: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
