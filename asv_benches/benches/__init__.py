"""The asv suite, one file for each part of the package; README.md, a folder up, lists them.

Not asv's are peers.py, which compares with other libraries (peers_*.py: its groups, _*_peers.py: who takes part), and
scaling.py. _*_data.py make data; _common.py and _peers.py are what the files share.
"""
