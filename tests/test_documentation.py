"""README, docs and CONTRIBUTING: short, with links that work. Their code runs as doctests."""

import re
import shutil
from itertools import combinations
from pathlib import Path

import pytest
from PIL import Image

from paper.report import write_report

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_point_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{target} does not exist"
        headings = re.findall(r"^#+ (.+)$", file.read_text(), re.M) if heading else []
        anchors = [text.lower().replace(" ", "-") for text in headings]
        assert not heading or heading in anchors, f"{target} has no such heading"


def test_readme_is_short_and_starts_with_code():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 130
    assert lines.index("```python") <= 15
    assert (ROOT / "docs/images/chain.png").stat().st_size < 150_000


def test_walk_through_the_modules_never_goes_back():
    import grimp  # here, as a machine with a GPU may not have it

    text = (ROOT / "CONTRIBUTING.md").read_text()
    walk = re.findall(r"^\| \d+ \| `([\w/]+)\.py` \|", text, re.M)
    assert 6 <= len(walk) <= 12
    rooms = [module.partition("/")[0] for module in walk]
    assert all(a == b for a, b in zip(rooms, sorted(rooms, key=rooms.index), strict=True))
    graph = grimp.build_graph("haarpool", cache_dir=None)
    names = [f"haarpool.{module.replace('/', '.')}" for module in walk]
    for earlier, later in combinations(names, 2):
        assert not graph.chain_exists(importer=earlier, imported=later), f"{earlier} needs {later}"


def assert_pages_have(tables, pages):
    text = "".join((ROOT / page).read_text() for page in pages)
    for name, table in tables.items():
        assert f"<!-- {name} -->\n{table}\n<!-- end -->" in text, "run make pages"


@pytest.mark.slow
def test_report_is_that_of_the_results(tmp_path):
    results = ROOT / "results"
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    pages = write_report(tmp_path)
    assert [page.name for page in pages] == ["README.md", "report.html", "tables.tex"]
    for page in pages:
        # A bool: pytest need not show where two long texts differ.
        is_same = page.read_text() == (results / page.name).read_text()
        assert is_same, f"results/{page.name} is not up to date: run make pages"


def test_tables_of_scores_are_those_of_the_results():
    from benchmarks.default_scores import PAGES, make_tables

    results = ROOT / "results"
    assert_pages_have(
        make_tables(results / "default_scores.jsonl", results / "chemprop.jsonl"), PAGES
    )


def test_tables_and_figure_of_the_paper_are_those_of_the_results():
    from paper.page import FIGURE, PAGES, figure_rows, make_tables, read_experiments
    from paper.picture import digest

    results = ROOT / "results"
    assert_pages_have(make_tables(results), PAGES)
    with Image.open(results / FIGURE) as figure:
        drawn = figure.text["Description"]
    assert drawn == digest(figure_rows(read_experiments(results))), "run make pages"
    assert (results / FIGURE).stat().st_size < 150_000


def test_tables_of_speed_are_those_of_the_results():
    from benchmarks.speed_page import PAGES, make_tables

    assert_pages_have(make_tables(ROOT / "results"), PAGES)


def test_table_of_tokens_is_that_of_the_registry():
    """A new layer is added by `make pages`; the lines that are there are right."""
    from benchmarks.layer_page import PAGES, make_tables

    (page,), lines = PAGES, make_tables()["tokens"].splitlines()
    table = (ROOT / page).read_text().partition("<!-- tokens -->\n")[2].partition("\n<!-- end")[0]
    assert len(table.splitlines()) > 20
    for line in table.splitlines():
        assert line in lines, "run make pages"
