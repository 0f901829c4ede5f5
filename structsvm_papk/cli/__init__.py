"""The command ``structsvm-papk``: parses, calls, prints.

A module for each command, imported when the command is called; `program` lists them. Exit status:
0 done, 1 no result that holds (a solver did not reach its tolerance, no user could be evaluated),
2 wrong input, 3 an error of the program itself, 130 interrupted by Ctrl-C or SIGTERM.
"""

import os
import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; no traceback reaches the user."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from structsvm_papk.cli import program

        status = program.run(words)
    except KeyboardInterrupt:  # while modules were imported; `run` sees to later ones
        print("Error: interrupted", file=sys.stderr)
        if "--json" in words:
            print('{"error": "interrupted"}')
        status = 128 + signal.SIGINT
    except MemoryError:  # as modules were imported, or as another one was reported
        status = 2
        os.write(2, b"Error: not enough memory\n")
        if "--json" in words:
            os.write(1, b'{"error": "not enough memory"}\n')
    if arguments is None:  # the process ends now: a signal changes nothing of what is done
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return status
