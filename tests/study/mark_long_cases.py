"""Marks the cases of `tests/run --all` alone: those that take long, or need what only that installs."""

from __future__ import annotations

import os

import pytest

FOR_ALL = "tests/run --all has these cases"
SHORT = os.environ.get("TEST_EXTENT", "all") != "all"
takes_long = pytest.mark.skipif(SHORT, reason=FOR_ALL)
