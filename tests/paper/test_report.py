"""The report, from lines that no training made."""

import json
import shutil

import numpy as np
import pytest

from haarpool.comparison.document import Grid, to_html, to_latex
from haarpool.comparison.learners import network_config
from haarpool.comparison.lines import ResultLines
from haarpool.errors import HaarPoolError
from haarpool.tasks import find_task
from paper.report import write_report
from paper.tables import find_table

CELLS = {cell.key: cell for cell in find_table("table1").cells}


def line(dataset, method, seed, value, protocol="random", **others):
    cell = CELLS[dataset, method, protocol]
    return {
        "dataset": dataset, "method": method, "protocol": protocol, "seed": seed, "status": "ok",
        "metric": "accuracy", "value": value, "split_hash": f"{protocol} {seed}",
        "sizes": [80, 10, 10], "config": network_config(cell).to_json(), **others,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    results = ResultLines(tmp_path, "table1")
    for seed in range(10):
        results.append(line("MUTAG", "haarpool", seed, 0.75 + 0.01 * (seed % 2)))
        results.append(line("MUTAG", "gin", seed, 0.85 + 0.01 * (seed % 2)))
    results.append(line("NCI1", "sagpool", 0, 0.74))
    results.append(line("NCI1", "gpool", 0, None, status="failed", reason="out of memory"))
    results.append(line("NCI1", "diffpool", 0, 0.1, config={"arch": "another"}))
    return tmp_path


def row(text, *starts):
    """The cells of the first row that starts with these."""
    rows = [[c.strip() for c in one.strip("|").split("|")] for one in text.splitlines()]
    return next(cells for cells in rows if cells[: len(starts)] == list(starts))


def test_numbers_intervals_and_published_values(folder):
    paths = write_report(folder)
    assert [path.name for path in paths] == ["README.md", "report.html", "tables.tex"]
    text = paths[0].read_text()
    assert row(text, "HaarPool")[1] == "75.5 ± 0.5 [90.0 ± 3.6]"
    assert row(text, "SAGPool")[1:4] == ["–", "– [72.1]", "74.0 ± – (1) [74.2]"]
    assert row(text, "HaarPool", "random")[2:] == [
        "10", "75.5 ± 0.5", "74.9 to 76.1", "–", "90.0 ± 3.6, above our interval",
    ]  # fmt: skip
    assert row(text, "GIN", "random")[5] == "+10.0 (10.0 to 10.0)"
    assert "n_test/n_train" in text


def test_missing_failed_and_outdated_lines_are_named(folder):
    text = write_report(folder)[0].read_text()
    assert "NCI1, gPool, random, split 0 failed: out of memory" in text
    assert row(text, "gPool")[3] == "failed"
    assert "NCI1, SAGPool, random: 9 of 10 trials not run yet." in text
    assert "PROTEINS, random: not run yet: HaarPool; HaarPool, untied; GIN;" in text
    assert "Lines of other settings, or replaced by later ones, left out: 1." in text
    assert "- GIN (`gin`). Convolutions," in text
    assert "different machines" not in text


def test_failures_with_the_same_problem_are_told_once(folder):
    results = ResultLines(folder, "table1")
    for seed in (3, 4, 6):
        reason = f"got nan in step {1.5 * 300**seed:,}" if seed < 6 else "out of memory"
        problem = {"problem": "a finite loss"} if seed < 6 else {}
        results.append(line("NCI1", "gpool", seed, None, status="failed", reason=reason, **problem))
    for seed in (0, 1):  # of earlier versions
        reason = f"HaarPoolError: expected a finite loss, got nan in step {seed}; train again"
        results.append(line("NCI1", "sortpool", seed, None, status="failed", reason=reason))
    text = write_report(folder)[0].read_text()
    assert "- NCI1, gPool, random, splits 0, 6 failed, the first one: out of memory\n" in text
    first = "the first one: got nan in step 40,500,000.0\n"
    assert f"- NCI1, gPool, random, splits 3, 4 failed, {first}" in text
    assert "- NCI1, SortPool, random, splits 0, 1 failed, the first one: HaarPoolError" in text


@pytest.mark.parametrize("num_classes", [2, 3])
def test_networks_that_predict_one_class_are_named(tmp_path, num_classes):
    results, rng = ResultLines(tmp_path, "table1"), np.random.default_rng(0)
    labels = np.concatenate([np.arange(num_classes), rng.integers(num_classes, size=30)])
    classes = [np.zeros_like(labels), labels[::-1], np.ones_like(labels), labels]
    for seed, predicted in enumerate(classes):
        scores = find_task("classification").score(np.eye(num_classes)[predicted], labels)
        test = {"scores": {"test": scores}}
        results.append(line("MUTAG", "gin", seed, scores["accuracy"], **test))
    text = write_report(tmp_path)[0].read_text()
    text = text.split("Networks that predict one class")[1].split("###")[0]
    assert text.strip().splitlines()[1:] == ["", "- MUTAG, GIN, random: splits 0, 2."]


def test_without_networks_that_predict_one_class(folder):
    assert "predict one class" not in write_report(folder)[0].read_text()


def test_cells_that_do_not_exist_are_empty(folder):
    text = write_report(folder)[0].read_text()
    assert row(text, "SAGPool, mean readout")[1:] == ["–", "– [72.1]", "– [74.2]", "", ""]


def test_it_is_made_from_the_lines_alone(folder, tmp_path):
    first = [path.read_text() for path in write_report(folder)]
    assert [path.read_text() for path in write_report(folder)] == first
    path = folder / "table1" / "MUTAG.jsonl"
    lines = sorted(path.read_text().splitlines(), reverse=True)  # in any order
    path.write_text("\n".join(lines) + "\n")
    assert [path.read_text() for path in write_report(folder)] == first
    assert all(json.loads(one)["status"] == "ok" for one in lines)


def test_parts_as_columns(tmp_path):
    cell = find_table("triangles").cells[0]
    parts = {"train": 0.47, "validation": 0.46, "test": 0.36, "original sizes": 0.46, "large": 0.26}
    for seed in range(3):
        shared = dict(zip(("dataset", "method", "protocol"), cell.key, strict=True))
        ResultLines(tmp_path, "triangles").append(
            shared
            | {"seed": seed, "status": "ok", "metric": "accuracy", "value": 0.36 + 0.01 * seed}
            | {"split_hash": "published", "sizes": [3, 1, 1], "parts": parts}
            | {"config": network_config(cell).to_json()}
        )
    text = write_report(tmp_path)[0].read_text()
    assert row(text, "Method")[1:] == list(parts)
    name = "GIN-HP-GIN-HP-GIN-MP"
    assert row(text, name)[1:3] == ["47.0 ± 0.0 (3) [47.5]", "46.0 ± 0.0 (3) [46.3]"]
    assert row(text, name, "given")[2:5] == ["3", "37.0 ± 1.0", "34.5 to 39.5"]  # one split


def test_figure_of_losses(tmp_path):
    cell = find_table("qm7").cells[0]
    shared = dict(zip(("dataset", "method", "protocol"), cell.key, strict=True))
    for seed in range(2):
        history = {"train_loss": [1.0, 0.5, 0.4], "validation": [90.0, 60.0, 50.0 + seed]}
        ResultLines(tmp_path, "qm7").append(
            shared
            | {"seed": seed, "status": "ok", "metric": "mae", "value": 40.0 + 2 * seed}
            | {"split_hash": f"{seed}", "sizes": [8, 1, 1], "history": history}
            | {"config": network_config(cell).to_json()}
        )
    text = write_report(tmp_path)[0].read_text()
    assert "](qm7.png)" in text
    assert (tmp_path / "qm7.png").stat().st_size > 5000
    assert row(text, "GCN-HaarPool")[1] == "41.0 ± 1.4 (2) [42.9 ± 1.2]"  # not in per cent


def test_what_pooling_adds(folder):
    results = ResultLines(folder, "table1")
    assert "What pooling adds" not in write_report(folder)[0].read_text()
    for seed in range(10):
        results.append(line("MUTAG", "best-no-pooling", seed, 0.85))
        results.append(line("MUTAG", "best", seed, 0.87 + 0.01 * (seed % 2)))
        results.append(line("MUTAG", "best", seed, 0.5, "10-fold"))  # nothing to compare with
        if seed < 4:
            results.append(line("NCI1", "best-no-pooling", seed, 0.83))
        results.append(line("NCI1", "best", seed, 0.82))
        results.append(line("MUTAG", "haarpool-untied", seed, 0.9))  # has pooling too
    text = write_report(folder)[0].read_text().split("What pooling adds")[1]
    text = text.split("###")[0]
    assert "above zero, pooling is better" in text
    names = ["haarpool, default", "random"]
    # s = 0.527, t = 2.262, and sqrt(1/10 + 10/80) = 0.474: half of the interval is 0.565
    assert row(text, *names)[2:5] == ["+2.5 (1.9 to 3.1)", "–", "-1.0 (-1.0 to -1.0, n = 4)"]
    assert text.count("haarpool") == 1


def test_what_pooling_adds_in_each_part(tmp_path):
    cells = {cell.method: cell for cell in find_table("triangles").cells}
    for method, large in (("best", 0.6), ("best-no-pooling", 0.5)):
        cell = cells[method]
        parts = dict.fromkeys(("train", "validation", "test", "original sizes"), 0.9)
        for seed in range(10):
            ResultLines(tmp_path, "triangles").append(
                dict(zip(("dataset", "method", "protocol"), cell.key, strict=True))
                | {"seed": seed, "status": "ok", "metric": "accuracy", "value": 0.75}
                | {"split_hash": "published", "sizes": [3, 1, 1]}
                | {"parts": parts | {"large": large}}
                | {"config": network_config(cell).to_json()}
            )
    text = write_report(tmp_path)[0].read_text().split("What pooling adds")[1]
    same, more = "0.0 (0.0 to 0.0)", "+10.0 (10.0 to 10.0)"
    assert row(text, "HaarSumNet, walks", "given")[2:] == [same] * 4 + [more]


def write_errors(folder, method, protocol, errors):
    """Write lines of QM7: random splits, or five folds again and again."""
    cells = {cell.key: cell for cell in find_table("qm7").cells}
    cell = cells["QM7", method, protocol]
    for seed, mae in enumerate(errors):
        split = seed % 5 if protocol == "given" else seed
        ResultLines(folder, "qm7").append(
            dict(zip(("dataset", "method", "protocol"), cell.key, strict=True))
            | {"seed": seed, "status": "ok", "metric": "mae", "value": mae}
            | {"split_hash": f"{protocol} {split}", "sizes": [8, 1, 1]}
            | {"config": network_config(cell).to_json()}
        )


def test_a_lower_error_is_a_gain(tmp_path):
    for method, mae in (("best", 2.5), ("best-no-pooling", 3.0)):
        for protocol in ("random", "given"):
            write_errors(tmp_path, method, protocol, [mae, 2.6, 2.6])
    text = write_report(tmp_path)[0].read_text().split("What pooling adds")[1]
    assert "above zero, pooling is better" in text
    # s = 0.289, t = 4.303, and sqrt(1/3 + 1/8) = 0.677: half of the interval is 0.84
    for protocol in ("random", "given"):
        assert row(text, "HaarSumNet", protocol)[2:] == ["+0.17 (-0.67 to 1.01, n = 3)"]


def test_trials_of_the_same_fold_are_averaged(tmp_path):
    errors = [2.0, 2.1, 2.2, 2.3, 2.4, 2.2, 2.3, 2.4, 2.5, 2.6]  # means 2.1 to 2.5
    for protocol in ("random", "given"):
        write_errors(tmp_path, "haarpool", protocol, [10 * error for error in errors])
        write_errors(tmp_path, "best", protocol, errors)
        write_errors(tmp_path, "default", protocol, errors[:7])
        write_errors(tmp_path, "best-no-pooling", protocol, [error - 0.001 for error in errors])
    text = write_report(tmp_path)[0].read_text()
    assert "protocol random, 10 splits, or the number" in text
    assert row(text, "HaarSumNet")[1] == "2.30 ± 0.18"
    assert row(text, "haarpool, default")[1] == "2.21 ± 0.13 (7)"
    pooling, _, details = text.partition("QM7: all methods and protocols")
    # s = 0.158, t = 2.776, and sqrt(1/5 + 1/8) = 0.570: half of the interval is 0.25
    numbers = row(details, "HaarSumNet", "given")[2:]
    assert numbers[:3] == ["5", "2.30 ± 0.16", "2.05 to 2.55"]
    assert numbers[3] == "-20.7 (-23.0 to -18.4)"  # complete: without n
    assert row(details, "HaarSumNet", "random")[2:4] == ["10", "2.30 ± 0.18"]
    assert row(details, "GCN-HaarPool", "given")[2:4] == ["5", "23.0 ± 1.6"]  # not below 10
    assert row(details, "haarpool, default", "given")[2] == "5"
    assert row(details, "haarpool, default", "given")[5].endswith(", n = 5)")
    pooling = pooling.split("What pooling adds")[1]
    for protocol in ("random", "given"):
        assert row(pooling, "HaarSumNet", protocol)[2] == "0.00 (0.00 to 0.00)"
    assert "QM7, haarpool, default, given: 3 of 10 trials not run yet." in text
    assert "QM7, HaarSumNet, given:" not in text


def test_zero_has_no_sign(folder):
    for seed in range(10):
        value = 0.75 + 0.01 * (seed % 2) - 0.0001 * seed
        ResultLines(folder, "table1").append(line("MUTAG", "sortpool", seed, value))
    text = write_report(folder)[0].read_text()
    assert row(text, "SortPool", "random")[5] == "0.0 (-0.1 to 0.0)"
    assert "-0.0" not in text


def test_trials_on_different_machines_are_named(folder):
    for seed in range(10):
        shared = {"device": "cpu", "chain_hash": str(seed // 8)}
        ResultLines(folder, "table1").append(line("MUTAG", "eigenpool", seed, 0.8, **shared))
        device, chains = ("cpu", "a") if seed < 3 else ("cuda", "b" if seed < 8 else "c")
        shared = {"device": device, "chain_hash": chains}
        ResultLines(folder, "table1").append(line("MUTAG", "sortpool", seed, 0.8, **shared))
        kinds = {"two levels": "d"} | ({"three levels": "e"} if seed < 3 else {})
        shared = {"chain_hash": "d" if seed else "e", "chain_hashes": kinds}
        ResultLines(folder, "table1").append(line("MUTAG", "diffpool", seed, 0.8, **shared))
    text = write_report(folder)[0].read_text()
    assert "- MUTAG, SortPool, random: cpu 3, cuda 7, 3 sets of chains.\n" in text
    assert "- MUTAG, EigenPool, random: cpu 10, 2 sets of chains.\n" in text
    assert "- MUTAG, DiffPool, random: " not in text
    assert "- MUTAG, GIN, random: " not in text


def test_lines_of_other_tables_and_settings_change_nothing(folder):
    before = row(write_report(folder)[0].read_text(), "HaarPool", "random")
    results = ResultLines(folder, "table1")
    for seed in range(2):
        config = network_config(CELLS["MUTAG", "haarpool", "random"]).to_json() | {"epochs": 3}
        results.append(line("MUTAG", "haarpool", seed, 0.1, config=config))
    results.append(line("MUTAG", "haarpool", 0, 9.0, config={}, metric="mae"))
    results.append(line("MUTAG", "haarpool", 0, 0.1) | {"method": "of the future"})
    text = write_report(folder)[0].read_text()
    assert row(text, "HaarPool", "random") == before
    assert "left out: 5." in text


def test_quick_report_has_the_quick_lines_alone(folder):
    cell = find_table("table1").shortened().select(["MUTAG"], ["gin"], ["random"]).cells[0]
    config = network_config(cell).to_json()
    ResultLines(folder, "table1").append(line("MUTAG", "gin", 0, 0.4, config=config))
    ResultLines(folder, "table1").append(line("MUTAG", "gin", 0, 0.4) | {"method": "other"})
    (folder / "empty" / "table1").mkdir(parents=True)
    shutil.copy(folder / "table1" / "NCI1.jsonl", folder / "empty" / "table1")
    with pytest.raises(HaarPoolError, match="lines of results"):
        write_report(folder / "empty", quick=True)
    text = write_report(folder, quick=True)[0].read_text()
    assert row(text, "GIN")[1] == "40.0 ± – (1) [89.4]"
    assert "| HaarPool |" not in text


def test_a_readme_of_somebody_else_is_kept(folder):
    write_report(folder)
    write_report(folder)
    (folder / "README.md").write_text("my own page")
    with pytest.raises(HaarPoolError, match=r"README.md, which is not a report"):
        write_report(folder)
    assert (folder / "README.md").read_text() == "my own page"


def test_without_lines(tmp_path):
    with pytest.raises(HaarPoolError, match="lines of results"):
        write_report(tmp_path)


def test_a_folder_of_other_files_is_no_folder_of_results(tmp_path):
    (tmp_path / "notes.md").write_text("my own page")
    with pytest.raises(HaarPoolError, match=r"which has notes.md"):
        write_report(tmp_path)


def test_special_characters():
    grid = Grid("a_b & 5 %", ["x", "y"], [["<b>", "1 ± 2 [3]"]])
    parts = ["# T<1>", "see `a<b`", ["one"], grid]
    page, tex = to_html(parts), to_latex(parts)
    assert "<title>T&lt;1&gt;</title>" in page
    assert "<p>see <code>a&lt;b</code></p>\n<ul><li>one</li></ul>" in page
    assert "<td>&lt;b&gt;</td>" in page
    assert r"\caption{a\_b \& 5 \%}" in tex
    assert r"1 $\pm$ 2 {[}3]" in tex
    assert r"\usepackage{booktabs, adjustbox}" in tex
