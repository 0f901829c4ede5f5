"""A metric of every user, by the package."""

from structsvm_papk.metrics import evaluate


def values_of(name, scores, labels, groups=None, **options):
    """In the order of the sorted unique groups; NaN where a user is left out."""
    return evaluate([name], scores, labels, groups, **options).values[:, 0]
