"""Input checks shared by the bounds."""

from structsvm_papk.errors import InputError


def checked_sizes(n_pos: int, n_neg: int, k: int) -> tuple[int, int, int]:
    """Return the sizes as whole numbers with n_pos >= 1 and 1 <= k <= n_neg, or refuse."""
    for name, value in (("n_pos", n_pos), ("n_neg", n_neg), ("k", k)):
        if int(value) != value or value < 0:
            raise InputError(f"{name} = {value}: a whole number")
    if n_pos < 1:
        raise InputError("the list has no positives: the pAp@k risk is not defined")
    if not 1 <= k <= n_neg:
        raise InputError(f"k = {k} with {n_neg} negatives: need 1 <= k <= n_neg")
    return int(n_pos), int(n_neg), int(k)


def check_rho(rho: float) -> None:
    """Refuse an error probability outside (0, 1/2]."""
    if not 0 < rho <= 0.5:
        raise InputError(f"rho = {rho}: the error probability lies in (0, 1/2]")


def check_width(half_width: float) -> None:
    """Refuse a target half-width outside (0, 1)."""
    if not 0 < half_width < 1:
        raise InputError(f"half_width = {half_width}: a number in (0, 1)")
