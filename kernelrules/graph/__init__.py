"""Learning on graphs: a few points have labels, and neighbours have similar values.

neighbours.py  knn_graph          fitting.py    fit: from checked arguments to a GraphFit
laplacians.py  laplacian          solving.py    the sparse system: factorisation, conjugate gradients, certificate
                                  multigrid.py  the preconditioner of conjugate gradients
"""

from kernelrules.graph.fitting import Unreached, fit
from kernelrules.graph.laplacians import laplacian
from kernelrules.graph.neighbours import knn_graph
from kernelrules.results import Certificate, ConvergenceWarning, GraphFit

__all__ = ["Certificate", "ConvergenceWarning", "GraphFit", "Unreached", "fit", "knn_graph", "laplacian"]
