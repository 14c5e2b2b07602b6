"""Trees and rule lists for other programs and for people.

drawing.py    to_text, to_dot, to_mermaid: what each node or rule asks, in words
source.py     to_python, to_sql: one test for each leaf or rule, the first that holds answers
document.py   to_json, from_json: all there is, and back
branches.py   what these are made from: names, splits in words, conditions
"""

from kernelrules.export.document import from_json, to_json
from kernelrules.export.drawing import to_dot, to_mermaid, to_text
from kernelrules.export.source import to_python, to_sql

__all__ = ["from_json", "to_dot", "to_json", "to_mermaid", "to_python", "to_sql", "to_text"]
