"""Certified cutting-plane training and evaluation of rankers for the pAp@k metric."""
