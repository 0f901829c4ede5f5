"""The cutting-plane model, and solvers of its restricted quadratic problem."""
