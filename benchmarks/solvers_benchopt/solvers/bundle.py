from benchmark_utils.cutting_planes import CuttingPlaneSolver


class Solver(CuttingPlaneSolver):
    """Proximal bundle with several cuts an iteration: the package's default."""

    name = "bundle"
    method = "bundle"
    parameters = {"qp_solver": ["interior_point", "piqp", "clarabel"]}
