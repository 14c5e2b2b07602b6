"""`python -m kernelrules`: the command `kernelrules` of report/cli.py."""

import sys

from kernelrules.report.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
