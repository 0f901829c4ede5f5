"""The cutting-plane model, and solvers of its restricted quadratic problem.

Arrays in, arrays and a feasible dual point out; whoever found the point, the bound is computed from
it. May import `errors` only.
"""
