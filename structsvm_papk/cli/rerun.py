"""``rerun``: repeat the run that a JSON result tells of, and compare."""

import contextlib
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options, recording
from structsvm_papk.cli._shared._record import (
    Difference,
    check_inputs,
    differences,
    load_result,
    versions,
)
from structsvm_papk.errors import InputError

_SHOWN = 50


def rerun(
    result: Annotated[Path, typer.Argument(help="What a command printed with --json.")],
    tol: Annotated[
        float,
        typer.Option(help="Numbers a, b are the same within this times max(1, |a|, |b|)."),
    ] = 1e-6,
    as_json: options.Json = False,
) -> None:
    """Run a recorded command again and compare every number but times.

    Says whether they are the same to the bit, or within --tol (exit status 0), or not (1). Refuses
    where a file that the run read is missing or has changed (2). What the command writes goes to a
    temporary folder, which is removed.
    """
    if not 0 <= tol < 1:
        raise InputError(f"--tol {tol:g} must lie between 0 and 1")
    before = load_result(result)
    with _in_directory(before["run"]):
        check_inputs(before["run"])
        now = _repeated(before["run"]["command"][1:])
    differing = differences(before, now, tol)
    same = not any(difference.matters for difference in differing)
    content: dict[str, Any] = {"same": same, "identical": not differing, "tol": tol}
    content |= {"differences": [vars(d) for d in differing]}
    console.answer(as_json, content, _show, differing, same, tol)
    _note_versions(before["run"])
    if not same:
        raise typer.Exit(1)


def _in_directory(run: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    """Where the command ran, if that is still there: its paths may be relative."""
    directory = run.get("directory")
    if isinstance(directory, str) and Path(directory).is_dir():
        return contextlib.chdir(directory)
    return contextlib.nullcontext()


def _repeated(arguments: list[str]) -> dict[str, Any]:
    """The JSON object of a command, run with its outputs in a temporary folder."""
    if arguments[0] == "rerun":
        raise InputError("the result is of rerun itself: give the result that it repeated")
    from structsvm_papk.cli.program import app

    if "--json" not in arguments:
        arguments = [*arguments, "--json"]
    printed = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(recording.outputs_in(stack.enter_context(TemporaryDirectory())))
        stack.enter_context(contextlib.redirect_stdout(printed))
        app(args=arguments, prog_name="structsvm-papk", standalone_mode=False)
    try:
        content: dict[str, Any] = json.loads(printed.getvalue())
        return content
    except ValueError:
        raise InputError(f"{' '.join(arguments)} prints no result") from None


def _show(differing: list[Difference], same: bool, tol: float) -> None:
    if not differing:
        print("identical: every number is the same to the bit")
        return
    rows = []
    for difference in sorted(differing, key=lambda d: not d.matters)[:_SHOWN]:
        words = "different"
        if not difference.matters:
            words = "effort" if difference.effort else f"within {tol:g}"
        rows.append((difference.place, str(difference.before), str(difference.now), words))
    console.print_table("What differs", ("entry", ">before", ">now", ""), rows)
    if len(differing) > _SHOWN:
        console.note(f"and {len(differing) - _SHOWN} more")
    print(f"the same within {tol:g}" if same else "different")


def _note_versions(run: dict[str, Any]) -> None:
    """Say which packages are others than then: the usual reason for a difference."""
    then, now = run.get("versions"), versions()
    if not isinstance(then, dict):
        return
    other = [f"{n} {then[n]} then, {now[n]} now" for n in now if then.get(n, now[n]) != now[n]]
    if other:
        console.note(f"other versions: {'; '.join(other)}")
