"""Storages of features: dense, CSR, curves, levels, and several of them side by side.

A storage stands for a matrix M with a column for each weight, and answers everything that is asked
about it (`base`): products, what its columns are like, how rows are taken and joined. Nothing
outside this folder asks how features are stored. `checks` says what a matrix may hold, `missing`
what stands in for what is not there, `knots` where curves may bend, `units` what the penalty
divides columns by, `terms` what a fit returns.
"""
