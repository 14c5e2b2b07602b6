"""Newton steps on free variables by one dense system: the slow twin of kernelrules.svm.newton."""

import numpy as np


def direction(K, slope, group, moving, fixed, to, ridge):
    """d that minimises ½dᵀ(K + ridge)d + slopeᵀd over the `moving` variables, of which the `fixed` go `to` their place
    and whose sums are 0 in each group; 0 elsewhere."""
    n_groups = group.max() + 1
    part = K[np.ix_(moving, moving)] + ridge * np.eye(len(moving))
    sums = (group[moving] == np.arange(n_groups)[:, None]).astype(float)
    units = (moving == np.asarray(fixed, dtype=int)[:, None]).astype(float)
    rows = np.concatenate([sums, units])
    system = np.block([[part, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    known = np.concatenate([-slope[moving], np.zeros(n_groups), to])
    d = np.zeros(len(slope))
    d[moving] = np.linalg.solve(system, known)[: len(moving)]
    return d
