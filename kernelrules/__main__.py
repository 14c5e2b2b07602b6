"""`python -m kernelrules`, the same as the command `kernelrules`: see cli.py."""

import sys

from kernelrules.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
