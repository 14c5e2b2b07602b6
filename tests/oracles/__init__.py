"""Slow, obvious twins of the compiled routines: what tests compare with."""
