"""Certificates: global optima of the ramps."""
