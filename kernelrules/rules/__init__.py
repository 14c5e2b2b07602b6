"""Rules: learned directly.

induce.py    induce                    ripper.py    rules of one class against the others
                                       description.py    description lengths
"""

from kernelrules.rules.induce import induce

__all__ = ["induce"]
