from benchmark_utils.cutting_planes import CuttingPlaneSolver


class Solver(CuttingPlaneSolver):
    """The textbook 1-slack method."""

    name = "one_slack"
    method = "one_slack"
    parameters = {"qp_solver": ["interior_point"]}
