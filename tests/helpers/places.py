"""Folders that tests read: their own, and that of the checkout."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
HELPERS = TESTS / "helpers"
ROOT = TESTS.parent
