"""Where the nodes of a binary tree stand: the tidy drawing, for nodes of different sizes.

A parent stands in the middle of its children, and subtrees are as close to one another as their outlines allow: at no
depth do two nodes come nearer than `gap`. One pass from the leaves up, without recursion.
"""

from __future__ import annotations

import numpy as np

__all__ = ["depths_of", "tidy"]


def depths_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the depth of each node; parents come before their children."""
    depths = np.zeros(len(left), dtype=np.int64)
    for node in np.flatnonzero(left >= 0):
        depths[left[node]] = depths[right[node]] = depths[node] + 1
    return depths


def tidy(left: np.ndarray, right: np.ndarray, extent: np.ndarray, gap: float) -> np.ndarray:
    """Return the horizontal centres of the nodes.

    Parameters
    ----------
    left, right : ndarray (n_nodes,)
        Children, -1 in leaves; a parent comes before its children.
    extent : ndarray (n_nodes,)
        How much room each node takes.
    gap : float
        Room between neighbours.

    Returns
    -------
    ndarray (n_nodes,)
        The outermost edge is at 0.

    Examples
    --------
    >>> import numpy as np
    >>> tidy(np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([1.0, 2.0, 4.0]), 1.0)
    array([3., 1., 5.])
    """
    n = len(left)
    shift = np.zeros(n)  # of a node's subtree against its parent
    outlines: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # first and last edge at each depth below, from the middle
    for node in range(n - 1, -1, -1):
        half = np.array([extent[node] / 2])
        if left[node] < 0:
            outlines[node] = (-half, half)
            continue
        a_first, a_last = outlines.pop(int(left[node]))
        b_first, b_last = outlines.pop(int(right[node]))
        shared = min(len(a_first), len(b_first))
        apart = float((a_last[:shared] - b_first[:shared]).max()) + gap
        shift[left[node]], shift[right[node]] = -apart / 2, apart / 2
        deeper_first, deeper_last = (a_first, a_last) if len(a_first) > shared else (b_first, b_last)
        step = -apart / 2 if len(a_first) > shared else apart / 2
        first = np.concatenate([-half, a_first[:shared] - apart / 2, deeper_first[shared:] + step])
        last = np.concatenate([half, b_last[:shared] + apart / 2, deeper_last[shared:] + step])
        outlines[node] = (first, last)
    middle = np.zeros(n)
    middle[0] = -outlines[0][0].min()
    for node in np.flatnonzero(left >= 0):
        for child in (left[node], right[node]):
            middle[child] = middle[node] + shift[child]
    return middle
