"""Export of trees and rule lists: text, graphs, source code, JSON.

drawing.py       to_text, to_dot, to_mermaid: nodes and rules as text
source.py        to_python, to_sql: one condition per leaf or rule, of which the first that holds decides
source_sums.py   sums of columns in this source code
document.py      to_json, from_json: all fields, and back
branches.py      names and conditions of leaves and rules, for all of these
"""

from kernelrules.export.document import from_json, to_json
from kernelrules.export.drawing import to_dot, to_mermaid, to_text
from kernelrules.export.source import to_python, to_sql

__all__ = ["from_json", "to_dot", "to_json", "to_mermaid", "to_python", "to_sql", "to_text"]
