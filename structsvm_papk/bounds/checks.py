"""Input checks shared by the bounds."""

from structsvm_papk.errors import InputError, check_number


def checked_sizes(n_pos: int, n_neg: int, k: int) -> tuple[int, int, int]:
    """Return the sizes as whole numbers with n_pos >= 1 and 1 <= k <= n_neg, or refuse."""
    for name, value in (("n_pos", n_pos), ("n_neg", n_neg), ("k", k)):
        check_number(name, value, least=0)
    if n_pos < 1:
        raise InputError("the list has no positives: the pAp@k risk is not defined")
    if not 1 <= k <= n_neg:
        raise InputError(f"k = {k} with {n_neg} negatives: need 1 <= k <= n_neg")
    return int(n_pos), int(n_neg), int(k)


def check_rho(rho: float) -> None:
    """Refuse an error probability outside (0, 1/2]."""
    check_number("rho, the error probability,", rho, above=0, most=0.5)


def check_width(half_width: float) -> None:
    """Refuse a target half-width outside (0, 1)."""
    check_number("half_width", half_width, above=0, below=1)
