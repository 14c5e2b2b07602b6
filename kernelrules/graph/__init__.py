"""Learning on graphs: a few points have labels, and neighbours are to have similar values.

neighbours.py  knn_graph          fitting.py    fit: from checked arguments to a GraphFit
laplacians.py  laplacian          solving.py    the sparse system: factorisation, conjugate gradients, certificate
                                  multigrid.py  what conjugate gradients are preconditioned by
"""

from kernelrules.graph.fitting import ConvergenceWarning, Unreached, fit
from kernelrules.graph.laplacians import laplacian
from kernelrules.graph.neighbours import knn_graph
from kernelrules.results import Certificate, GraphFit

__all__ = ["Certificate", "ConvergenceWarning", "GraphFit", "Unreached", "fit", "knn_graph", "laplacian"]
