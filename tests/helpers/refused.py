"""What tests of bad input share."""

import re

import pytest

__all__ = ["refused"]


def refused(argument, *words):
    """An error that names the argument, as a word of its own, and says what was wrong."""
    wanted = [rf"\b{re.escape(argument)}\b", *words]
    return pytest.raises((ValueError, TypeError), match="(?s)" + "".join(rf"(?=.*{word})" for word in wanted))
