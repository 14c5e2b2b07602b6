"""The asv suite: one file for each part of the package, and peers.py, which compares with other libraries."""
