"""Estimators in the manner of scikit-learn, and several solvers side by side."""
