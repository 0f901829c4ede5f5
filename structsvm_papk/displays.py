"""Pictures of a ranking, in the style of scikit-learn's displays; needs the extra `plot`."""


def new_axes(ax=None, size=(6.0, 4.2)):
    """The given axes, or new ones on a figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").add_subplot()
