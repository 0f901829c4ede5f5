"""Risks made of a surrogate and data, as oracles for the solvers: in memory, in files, on Dask."""
