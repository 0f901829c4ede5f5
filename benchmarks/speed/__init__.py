"""Speed and memory: solvers, evaluations, start-up, scoring, clusters."""
