"""When a curve is complete."""

from benchopt.stopping_criterion import StoppingCriterion


class GapBelow(StoppingCriterion):
    """Stop at a small gap, or where the solver has stopped by itself."""

    def __init__(self, tol=1e-9, strategy=None, key_to_monitor="gap", minimize=True):
        super().__init__(strategy, key_to_monitor, minimize, tol=tol)
        self.tol = tol

    def check_convergence(self, objective_list):
        last = objective_list[-1]
        if last["objective_gap"] <= self.tol:
            return True, 1.0
        return self._is_over(objective_list[-2:]), 0.0

    @staticmethod
    def _is_over(points):
        """More iterations were allowed, none were done."""
        passes = [point["objective_data_passes"] for point in points]
        return len(passes) == 2 and passes[0] == passes[1] > 0
