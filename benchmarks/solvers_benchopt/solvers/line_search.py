from benchmark_utils.cutting_planes import CuttingPlaneSolver


class Solver(CuttingPlaneSolver):
    """One cut an iteration, placed by an exact line search (OCAS)."""

    name = "line_search"
    method = "line_search"
    parameters = {"qp_solver": ["interior_point"]}
