"""Sockets of other libraries: evaluation callables for LightGBM, XGBoost and CatBoost."""
