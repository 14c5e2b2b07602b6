"""Pictures of results, drawn with matplotlib: axes in, the same axes out.

trees.py    tree                                layout.py   where the nodes of a tree stand
curves.py   cv_curve, path                      canvas.py   matplotlib, axes and colours
plane.py    regions                             surface.py  what a model answers on a grid
shapes.py   criteria, losses, ridge_forms
bars.py     importances, rules

matplotlib is imported by the first call, not with the package: `pip install 'kernelrules[plot]'` brings it.
"""

from kernelrules.plot.bars import importances, rules
from kernelrules.plot.curves import cv_curve, path
from kernelrules.plot.plane import regions
from kernelrules.plot.shapes import criteria, losses, ridge_forms
from kernelrules.plot.trees import tree

__all__ = ["criteria", "cv_curve", "importances", "losses", "path", "regions", "ridge_forms", "rules", "tree"]
