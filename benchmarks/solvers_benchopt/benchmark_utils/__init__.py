"""What the solvers, the data sets and the scripts beside this benchmark share."""
