"""How a solver's run ends where it is broken off."""

from structsvm_papk.errors import OracleFailure
from structsvm_papk.solvers.result import Status


def best_so_far(run, *arguments):
    """The result of ``run.loop(*arguments)``; broken off, that of the best point, if there is one.

    Parameters
    ----------
    run : object
        With ``loop``, which returns a status, ``result(status, message)``, and `best_w`.
    """
    try:
        return run.result(run.loop(*arguments))
    except KeyboardInterrupt:
        if run.best_w is None:
            raise
        return run.result(Status.INTERRUPTED)
    except OracleFailure as failure:
        if run.best_w is None:
            raise
        return run.result(Status.FAILED, str(failure))
