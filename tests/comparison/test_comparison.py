"""`haarpool.compare`: methods on the same splits of any graphs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from filelock import FileLock
from scipy.stats import t as student
from torch_geometric.data import Data

import haarpool as hp
from haarpool.comparison.comparison import FIGURE, KEYS, LINES, Comparison, make_table
from haarpool.comparison.lines import read_lines
from haarpool.comparison.methods import default_methods, find_method
from haarpool.comparison.table import Cell, Row, Table
from haarpool.datasets import read_graphs
from haarpool.nn.strings.registry import registered_layers
from helpers.errors import error_with

FAST = {"epochs": 1, "width": 4}
TWO = ["GC4-SUM-FC4", "GC4-HP-FC4"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))


def paths(number=12):
    return [
        Data(
            x=torch.ones(n, 1),
            edge_index=torch.tensor([[*range(n - 1), *range(1, n)], [*range(1, n), *range(n - 1)]]),
        )
        for n in (2 + g % 3 for g in range(number))
    ]


def test_all_methods_have_the_same_splits(tmp_path):
    result = hp.compare("rings", methods=TWO, repeats=3, settings=FAST, folder=tmp_path)
    lines = read_lines(tmp_path / LINES / "rings.jsonl")
    assert len(lines) == 6
    assert len({(line["seed"], line["split_hash"]) for line in lines}) == 3
    assert {line["schema"] for line in lines} == {1}
    assert len({line["data_hash"] for line in lines}) == 1
    # By hand: the difference over the splits, with the correction for training parts that overlap.
    scores = {m: [x["value"] for x in lines if x["method"] == m] for m in TWO}
    difference = np.subtract(scores[TWO[1]], scores[TWO[0]])
    train, _, test = lines[0]["sizes"]
    half = student.ppf(0.975, 2) * difference.std(ddof=1) * np.sqrt(1 / 3 + test / train)
    first, second = result.rows()
    assert second["difference"] == pytest.approx(difference.mean())
    assert second["difference_high"] == pytest.approx(difference.mean() + half)
    assert first.keys() == second.keys() == set(KEYS)
    assert (first["difference"], second["reference"]) == (None, TWO[0])
    assert first["weights"] > 0
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "intervals.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["rows"] == result.rows()


def test_what_is_there_is_not_trained_again(tmp_path, monkeypatch):
    hp.compare("rings", methods=TWO[:1], repeats=2, settings=FAST, folder=tmp_path)
    before = read_lines(tmp_path / LINES / "rings.jsonl")
    trained = []
    result = hp.compare(
        "rings", methods=TWO, repeats=2, settings=FAST, folder=tmp_path, show=trained.append
    )
    lines = read_lines(tmp_path / LINES / "rings.jsonl")
    assert lines[:2] == before
    assert len(trained) == 2
    assert [row["trainings"] for row in result.rows()] == [2, 2]


def test_labels_as_an_array():
    graphs = paths(60)
    for y, metric in (
        (["a", "b", "c"] * 20, "accuracy"),
        ([0.5, 1.5, 2.25] * 20, "mae"),
        ([[0, 1], [1, 0], [1, 1]] * 20, "roc_auc"),
    ):
        result = hp.compare(graphs, y, TWO[:1], repeats=1, settings=FAST, split="random")
        (row,) = result.rows()
        assert (row["dataset"], row["metric"], row["trainings"]) == ("graphs", metric, 1)


def test_several_datasets(tmp_path):
    datasets = {"first": "rings", "second": read_graphs("rings", seed=1)}
    result = hp.compare(datasets, methods=TWO[:1], repeats=1, settings=FAST, folder=tmp_path)
    assert [row["dataset"] for row in result.rows()] == ["first", "second"]
    lines = [read_lines(tmp_path / LINES / f"{name}.jsonl")[0] for name in datasets]
    assert lines[0]["data_hash"] != lines[1]["data_hash"]
    with pytest.raises(hp.HaarPoolError, match="no y for several datasets"):
        hp.compare(datasets, [0], TWO)


def test_default_methods_have_each_pooling():
    graphs = read_graphs("rings")
    table = make_table({"rings": graphs})
    names = [row.name for row in table.rows]
    poolings = [token for token, one in registered_layers().items() if one.kind == "pooling"]
    assert names == ["haarnet", "haarnet:levels=0", "plain", *(f"plain-{t}" for t in poolings)]
    settings = {cell.method: dict(cell.settings) for cell in table.cells}
    clusters = int(graphs.sizes.mean() / 2)
    assert settings["plain-DP"]["pooling"] == {"num_clusters": clusters}
    others = ("arch", "pooling", "domain")  # all else is the same
    same = [{k: v for k, v in one.items() if k not in others} for one in settings.values()]
    assert all(one == same[0] for one in same)


def test_methods_by_name(tmp_path):
    assert find_method("haarnet") in default_methods()
    assert find_method("plain-tp").settings["arch"] == "2GIN64-TP-GIN64-SUM-FC64"
    graphs = read_graphs("rings")
    assert find_method("best").cell(graphs, "rings", "random", {}).settings["arch"] == "haarnet"
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"arch": "GC8-SUM-FC8", "epochs": 3}))
    method = find_method(str(file))
    assert (method.row.name, method.settings["epochs"]) == ("mine", 3)


def test_the_config_of_a_run_is_a_method(tmp_path):
    model = hp.HaarClassifier(arch="GC8-SUM-FC8", epochs=1).fit("rings")
    model.save(tmp_path / "run")
    method = find_method(str(tmp_path / "run" / "config.json"))
    assert (method.row.name, method.settings["arch"]) == ("run", "GC8-SUM-FC8")
    assert not {"seed", "split", "repeats"} & method.settings.keys()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ["3GIN64-XX-FC64"]}, "»XX«"),
        ({"methods": []}, "at least one method"),
        ({"methods": ["plain-GC"]}, "a pooling: "),
        ({"methods": ["none.json"]}, "a JSON file with settings of a run"),
        ({"repeats": 0}, "repeats in 1..1000"),
        ({"settings": {"epoch": 3}}, "settings of RunConfig, got 'epoch'; choose among"),
        ({"settings": {"split": "random"}}, "got 'split'; pass split=\"random\""),
        ({"settings": {"seed": 1}}, "got 'seed'; pass seed=1"),
        ({"settings": {"arch": "haarnet"}}, "got 'arch'; pass methods=[\"haarnet\"]"),
        ({"settings": {"features": "nope"}}, "features of settings of rings out of"),
        (
            {"methods": "nosuch"},
            "haarnet, haarsum, haarunet, best, paper, plain, plain-TOKEN, a JSON file",
        ),
        ({"split": "scaffold"}, "molecules given as SMILES"),
        ({"split": "kfold:1000"}, "at least 1000 graphs"),
        ({"repeats": -1, "split": "kfold:4"}, "repeats in 1..1000"),
        ({"settings": {"epochs": 0}}, "epochs of settings >= 1"),
        ({"settings": {"lr": 0}}, 'pass for example settings={"lr": 0.001}'),
        ({"split": "halves"}, "stratified, random"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"device": "tpu"}, "device of this machine"),
    ],
)
def test_errors_come_before_the_work(changes, words, tmp_path):
    options = {"methods": TWO, "settings": FAST, "folder": tmp_path} | changes
    with pytest.raises(hp.HaarPoolError) as error:
        hp.compare("rings", **options)
    assert words in str(error.value)
    assert not list(tmp_path.iterdir())


def test_errors_of_reading_say_what_compare_takes(tmp_path, monkeypatch):
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    path, read = tmp_path / "file.csv", "pass haarpool.datasets.read_graphs(..., "
    path.write_text("molecule,label\nC,0\n")
    with error_with(f'{read}root="DIR") or set HAARPOOL_DATA'):
        hp.compare("NOPE")
    with error_with("expected smiles as a column", f'{read}smiles="COLUMN")'):
        hp.compare(path)
    with error_with("at least two classes in graphs", f'{read}task="regression")'):
        hp.compare(paths(), ["a"] * 12)
    with error_with("labels of the graphs of graphs, got none; pass y"):
        hp.compare(paths())


def test_a_method_that_does_not_fit_the_data_fails_alone(tmp_path):
    result = hp.compare(
        "rings", methods=["GC4-SUM-FC4", "haarsum"], repeats=2, folder=tmp_path,
        settings={"epochs": 1, "tied": (0,)},
    )  # fmt: skip
    first, second = result.rows()
    assert (first["trainings"], second["trainings"], second["failed"]) == (2, 0, 2)
    assert "tied" in second["reason"]
    assert "all trainings failed of haarsum: the table has" in " ".join(result.conclusions())
    assert any("haarsum" in text for text in result.failed())
    assert "haarsum      fails: expected " in str(result)
    assert "| haarsum | fails: expected " in (tmp_path / "README.md").read_text()
    assert "multicolumn{6}{p{0.6\\textwidth}}{fails: " in (tmp_path / "tables.tex").read_text()
    page = (tmp_path / "report.html").read_text()
    assert '<td colspan="6"' in page
    assert 'src="data:image/png;base64,iVBOR' in page
    assert f'src="{FIGURE}"' not in page


def test_a_preset_that_does_not_fit_a_dataset_fails_alone():
    rings = read_graphs("rings")
    datasets = {"rings": rings, "MUTAG": replace(rings, name="MUTAG")}
    settings = FAST | {"tied": (0,)}  # a tuple, which JSON does not have
    methods = ["GC4-SUM-FC4", "paper"]
    result = hp.compare(datasets, methods=methods, repeats=1, settings=settings)
    rows = {(row["dataset"], row["method"]): row for row in result.rows()}
    assert (rows["rings", "paper"]["trainings"], rows["rings", "paper"]["failed"]) == (0, 1)
    assert "a dataset of the paper: mutag, " in rows["rings", "paper"]["reason"]
    assert rows["MUTAG", "paper"]["trainings"] == rows["rings", "GC4-SUM-FC4"]["trainings"] == 1


def test_the_first_method_that_works_is_the_reference():
    result = hp.compare("rings", methods=["paper", *TWO], repeats=3, settings=FAST)
    assert [row["reference"] for row in result.rows()] == [None, None, TWO[0]]
    assert f"Difference to {TWO[0]}" in str(result)


def test_poolings_are_compared_with_the_same_network_without():
    methods = ["haarnet", "plain-TP", "haarnet:levels=0", "plain"]
    result = hp.compare("rings", methods=methods, repeats=3, settings=FAST)
    references = {row["method"]: row["reference"] for row in result.rows()}
    assert references == {
        "haarnet": None, "haarnet:levels=0": "haarnet", "plain": "haarnet", "plain-TP": "plain",
    }  # fmt: skip
    assert "difference to " in result.grids()[0].caption


def test_folds():
    result = hp.compare("rings", methods=TWO, repeats=2, split="kfold:3", settings=FAST)
    assert [(row["trainings"], row["splits"]) for row in result.rows()] == [(6, 6), (6, 6)]
    assert "2 repeats of 3 folds, split rule kfold:3" in result.grids()[0].caption


def test_fewer_repeats_than_lines(tmp_path):
    options = {"methods": TWO, "settings": FAST, "folder": tmp_path}
    hp.compare("rings", repeats=4, **options)
    result = hp.compare("rings", repeats=3, **options)
    assert [row["trainings"] for row in result.rows()] == [3, 3]
    assert "3 repeats" in result.grids()[0].caption
    # Lines of other methods and repeats are no lines of other settings.
    result = hp.compare("rings", **options | {"methods": TWO[1]}, repeats=1)
    assert "Lines of other settings" not in (tmp_path / "README.md").read_text()


def test_a_folder_of_other_files_is_kept(tmp_path):
    options = {"methods": TWO[0], "repeats": 1, "settings": FAST, "folder": tmp_path}
    for name in ("README.md", "result.json", "report.html"):
        file = tmp_path / name
        file.write_text("my own")
        with pytest.raises(hp.HaarPoolError, match=rf"a folder for a comparison, got .*{name}"):
            hp.compare("rings", **options)
        assert file.read_text() == "my own"
        file.unlink()
    hp.compare("rings", **options)
    hp.compare("rings", **options)
    (tmp_path / "README.md").write_text("my own")
    with pytest.raises(hp.HaarPoolError, match="which is not a report"):
        hp.compare("rings", **options)


def test_datasets_by_name():
    with pytest.raises(hp.HaarPoolError, match="at least one dataset, got none"):
        hp.compare({}, methods=TWO)
    result = hp.compare({"a/b": "rings"}, methods=TWO[0], repeats=1, settings=FAST)
    assert [row["dataset"] for row in result.rows()] == ["a/b"]


@pytest.mark.parametrize(("repeats", "splits"), [(1, "1 split"), (2, "2 splits")])
def test_few_repeats(repeats, splits):
    result = hp.compare("rings", methods=TWO, repeats=repeats, settings=FAST)
    (text,) = result.conclusions()
    assert text == f"rings: {splits}: no interval and no statement; these need 3 or more."
    row = result.rows()[1]
    assert (row["low"], row["high"], row["difference_low"]) == (None, None, None)
    assert row["difference"] is not None


def test_ten_graphs():
    result = hp.compare(paths(10), [0, 1] * 5, TWO, repeats=2, settings=FAST)
    assert [row["trainings"] for row in result.rows()] == [2, 2]


def test_folders_of_other_datasets(tmp_path):
    hp.compare("rings", methods=TWO[:1], repeats=1, settings=FAST, folder=tmp_path)
    options = {"methods": TWO[:1], "repeats": 1, "settings": FAST, "folder": tmp_path}
    with pytest.raises(hp.HaarPoolError, match="those of rings, another dataset;"):
        hp.compare({"mine": "rings"}, **options)
    with pytest.raises(hp.HaarPoolError, match="another dataset of this name"):
        hp.compare(read_graphs("rings", seed=1), **options)
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(hp.HaarPoolError, match="another process uses"),
    ):
        hp.compare("rings", **options)


# ------------------------------------------------------------------ in words


def comparison(values, metric="accuracy", one_split=False, repeats=5):
    """Make a comparison whose lines have these values by method."""
    rows = [Row(name, name) for name in values]
    settings = {"arch": "GC4-SUM-FC4"}
    cells = [Cell("data", name, "random", settings) for name in values]
    table = Table(
        name=LINES, title="", text="", rows=rows, cells=cells, reference=next(iter(values))
    )
    lines = [
        {
            "dataset": "data", "method": cell.method, "protocol": "random", "seed": seed,
            "status": "ok", "metric": metric, "value": value, "sizes": [80, 10, 10],
            "split_hash": "x" if one_split else str(seed), "training_seconds": 1.0,
            "num_parameters": 5, "config": cell.learner.config(cell),
        }
        for cell in cells
        for seed, value in enumerate(values[cell.method])
    ]  # fmt: skip
    return Comparison(table, lines, repeats)


NOISE = np.array([0.01, -0.01, 0.02, -0.02, 0.0])


def test_words_say_better_worse_and_not_told_apart():
    values = {"a": 0.5 + 0 * NOISE, "b": 0.9 + NOISE, "c": 0.1 + NOISE, "d": 0.5 + NOISE}
    texts = comparison(values).conclusions()
    assert texts[0].startswith("data: b is 40.0 points (")
    assert texts[0].endswith(") better than a.")
    assert texts[1].endswith(") worse than a.")
    assert texts[2] == "data: not told apart from a: d."
    assert len(texts) == 4
    assert texts[3].startswith("These 3 statements hold together with 95 % confidence")


def test_words_on_errors_say_that_less_is_better():
    (text,) = comparison({"a": 5 + NOISE, "b": 3 - NOISE}, "mae").conclusions()
    assert text.startswith("data: b is 2.00 in MAE (")
    assert text.endswith(") better than a.")


def test_several_statements_need_wider_intervals():
    """A difference that one statement allows is not said among ten of its kind."""
    spread = 0.1 * NOISE / NOISE.std(ddof=1)
    limit = student.ppf(0.975, 4) * 0.1 * np.sqrt(1 / 5 + 1 / 8)
    values = {"a": 0.5 + 0 * NOISE, "b": 0.5 + 1.1 * limit + spread}
    assert "better" in comparison(values).conclusions()[0]
    many = values | {f"other {i}": 0.5 + spread for i in range(9)}
    assert "b" in comparison(many).conclusions()[0].partition(": not told apart from a: ")[2]


def test_no_words_on_an_interval_without_width():
    values = {"a": 0.5 + NOISE, "b": 0.6 + NOISE, "c, d": 0.5 + NOISE}
    (text, _) = comparison(values).conclusions()
    same = "(the same difference on all splits)"
    assert text == f"data: not told apart from a: b {same}; c, d {same}."


def test_words_on_methods_with_few_common_splits():
    (text, *_) = comparison({"a": (0.5 + NOISE)[:2], "b": 0.9 + NOISE}).conclusions()
    assert text == "data: not told apart from a: b (less than 3 common splits)."


def test_words_on_one_method():
    assert comparison({"a": 0.5 + NOISE}).conclusions() == [
        "data: a alone: nothing to compare it with."
    ]


def test_the_number_of_splits_is_shown_where_some_are_missing():
    values = {"a": 0.5 + NOISE, "b": (0.9 + NOISE)[:4]}
    grid = comparison(values, repeats=5).grids()[0]
    assert grid.header[1] == "n"
    assert [row[1] for row in grid.rows] == ["5", "4"]
    assert comparison({"a": NOISE}).grids()[0].header[1] == "Mean"


def test_words_on_one_split():
    texts = comparison({"a": 0.5 + NOISE, "b": 0.9 + NOISE}, one_split=True).conclusions()
    assert texts[-1].startswith("data: all trainings share one split")


def test_it_prints_itself():
    one = comparison({"a": 0.5 + NOISE, "b": 0.9 + NOISE})
    caption = "data: accuracy in % on the test part, 5 repeats, split rule random."
    assert str(one).splitlines()[0] == caption
    assert max(map(len, str(one).splitlines()[:4])) <= 80
    assert "<table>" in one._repr_html_()
