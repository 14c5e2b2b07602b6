"""The asv benchmark suite, one file per part of the package; ../README.md lists them.

peers.py, which compares with other libraries, and scaling.py are not run by asv. peers_*.py are the groups of
peers.py, and _*_peers.py define their contenders. _*_data.py provide data; _common.py and _peers.py hold shared code.
"""
