"""Speed and memory: solvers, evaluations, start-up, clusters."""
