"""Gap to the best bound known, against seconds and against passes over the data."""

import numpy as np
from benchopt import BasePlot

COLUMNS = {"seconds": "time", "data passes": "objective_data_passes"}


class Plot(BasePlot):
    """Lowest gap so far; solvers that do not count passes appear against seconds only."""

    name = "Gap"
    type = "scatter"
    options = {"dataset": ..., "objective": ..., "against": list(COLUMNS)}

    def plot(self, df, dataset, objective, against):
        df = df[(df["dataset_name"] == dataset) & (df["objective_name"] == objective)]
        curves = []
        for solver, points in df.groupby("solver_name"):
            points = points[points["stop_val"].between(1e-20, 1e20)]  # not the start, w = 0
            points = points.groupby("stop_val").median(numeric_only=True)
            points = points.sort_values(COLUMNS[against])
            x = points[COLUMNS[against]].to_numpy(dtype=float)
            y = np.minimum.accumulate(points["objective_gap"].to_numpy(dtype=float))
            known = np.isfinite(x) & (x > 0)
            if known.any():
                curve = {"x": x[known].tolist(), "y": y[known].tolist(), "label": solver}
                curves.append(curve | self.get_style(solver))
        return curves

    def get_metadata(self, df, dataset, objective, against):
        return {
            "title": f"{objective}\nData: {dataset}",
            "xlabel": against,
            "ylabel": "relative gap to the best bound",
        }
