"""Subgradient descent as in the paper: normal start, step eta/sqrt(t+1), best loss kept."""

from benchmark_utils.descent import DescentSolver

from structsvm_papk import SubgradientDescent


class Solver(DescentSolver):
    """The authors' recipe."""

    name = "subgradient_paper"
    parameters = {"eta": [0.1]}

    def solver(self, n_iter):
        return SubgradientDescent.paper(self.alpha, eta=self.eta, max_iter=n_iter)
