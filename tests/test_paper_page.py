"""What of the paper reproduces: verdicts, peers and numbers of benchmarks/paper_page.py."""

from pathlib import Path

import numpy as np
import pytest
from helpers.lines import table_line as line

from haarpool.experiments.lines import ResultLines
from haarpool.experiments.statistics import Estimate
from haarpool.experiments.table import Published, find_table


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "benchmarks")
