"""Certificates and optima: global ones of the ramps, the same ones after faults."""
