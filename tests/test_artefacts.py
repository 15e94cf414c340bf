"""Files of earlier versions: this one loads, predicts, resumes and reports from all of them.

`artefacts/make.py` made one folder per version, with that version. Predictions may differ in the
last digits, because machines do.
"""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import haarpool as hp
from haarpool.chains.recipe import Recipe, with_options
from haarpool.comparison.lines import ResultLines, current_lines
from haarpool.data import ChainData
from helpers.commands import HAARPOOL, run_main, run_process
from helpers.tolerances import LOOSER, close
from paper import __main__ as paper
from paper.tables import find_table

FOLDER = Path(__file__).parent / "artefacts"
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if (path / "expected.json").exists())
INPUTS = {"classification": "rings", "regression": "molecules.csv"}
SHOWN = {"classification": "<strong>87.5 %", "regression": "<strong>1.93 ± 0.68"}  # scores
runs = pytest.mark.parametrize("name", INPUTS)


@pytest.fixture(params=VERSIONS)
def old(request, without_data, tmp_path, monkeypatch):
    """A copy of the files of a version, which is the current folder."""
    folder = tmp_path / "old"
    shutil.copytree(FOLDER / request.param, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def expected(old):
    return json.loads((old / "expected.json").read_text())


def table(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def assert_same_table(actual, expected, what="six digits"):
    """Equal texts, and numbers up to a tolerance."""
    actual, expected = table(actual), table(expected)
    assert [len(row) for row in actual] == [len(row) for row in expected]
    assert actual[0] == expected[0]
    for cells in zip(actual[1:], expected[1:], strict=True):
        for one, other in zip(*cells, strict=True):
            try:
                assert_allclose(float(one), float(other), rtol=LOOSER[what], atol=LOOSER[what])
            except ValueError:
                assert one == other


# ---------------------------------------------------------------------- runs


@runs
def test_a_run_predicts_as_before(old, name):
    run_main("predict", name, INPUTS[name], "--quiet", "--out", "now.csv")
    assert_same_table("now.csv", f"{name}.csv")


@runs
def test_a_complete_run_has_its_scores_and_nothing_to_resume(old, name):
    before = json.loads((old / name / "result.json").read_text())
    resumed = json.loads(run_main("train", "--resume", name, "--json").out)
    assert resumed["scores"] == before["scores"]
    assert (old / name / "result.json").read_text() == json.dumps(
        before, indent=1, ensure_ascii=False
    ) + "\n"


@runs
def test_an_interrupted_run_ends_as_one_that_was_not(old, name):
    folder = f"{name}-interrupted"
    assert (old / folder / "checkpoint.safetensors").exists()
    run_main("train", "--resume", folder, "--quiet")
    assert_same_table(f"{folder}/test.csv", f"{name}/test.csv", "training")
    now, before = (json.loads((old / one / "result.json").read_text()) for one in (folder, name))
    assert now["metric"] == before["metric"]
    assert now["best_epoch"] == before["best_epoch"]


@runs
def test_a_report_is_written_again(old, name):
    run_main("report", name)
    page = (old / name / "report.html").read_text()
    assert SHOWN[name] in page
    assert "<svg" in page


def test_an_estimator_is_loaded(old):
    model = hp.load("estimator", device="cpu")
    graphs = hp.load_dataset("rings")
    before = np.loadtxt("estimator.csv", delimiter=",")
    assert_allclose(model.predict_proba(graphs), before, atol=LOOSER["six digits"])
    assert model.predict(graphs).tolist() == [(-1, 7)[i] for i in before.argmax(1)]


@runs
def test_a_run_is_loaded_as_an_estimator(old, name):
    model = hp.load(name, device="cpu")
    column = [float(row[-1 if name == "regression" else 2]) for row in table(f"{name}.csv")[1:]]
    predicted = (
        model.predict("molecules.csv") if name == "regression" else model.predict_proba("rings")
    )
    predicted = predicted.reshape(len(column), -1)[:, 0]
    assert_allclose(predicted, column, rtol=LOOSER["six digits"], atol=LOOSER["six digits"])


# ---------------------------------------------------------------------- chains


def test_cached_chains_are_found(old, expected):
    rings = hp.load_dataset("rings")
    graphs = [rings[g] for g in range(0, 240, 12)]
    for cached in expected["cached"]:
        parameters = dict(cached["parameters"])
        features = parameters.pop("features", None)
        recipe = Recipe(**with_options(parameters))
        chains = hp.precompute(graphs, recipe, features=features, cache=old / "cache")
        assert chains.computed == 0
        assert [chain.digest for chain in chains] == cached["digests"]


def test_a_saved_chain_is_loaded(old, expected):
    chain, before = hp.Chain.load("chain.npz"), expected["chain"]
    assert str(chain) == before["text"]
    assert chain.digest == before["digest"]
    assert [parents.tolist() for parents in chain.parents] == before["parents"]
    x = np.arange(chain.sizes[0], dtype=np.float64) ** 2
    assert close(hp.adjoint(chain, x), np.array(before["adjoint"]))


def test_saved_graphs_with_chains_are_loaded(old, expected):
    graphs = torch.load("graphs.pt", weights_only=True)
    assert {type(graph) for graph in graphs} == {ChainData}
    assert [list(graph.chain_sizes) for graph in graphs] == expected["graphs"]
    for graph in graphs:
        chain = hp.build_chain(graph, num_levels=2, measure="mass")
        assert close(
            hp.adjoint(hp.TransformPlan(graph.tensors), graph.x), hp.adjoint(chain, graph.x),
            torch.float32,
        )  # fmt: skip


def test_a_file_of_graphs_with_chains_is_a_dataset(old):
    """In a process that has not imported their class."""
    out = run_process(HAARPOOL, "info", "graphs.pt", "--json").out
    assert json.loads(out)["graphs"] == 5


# ---------------------------------------------------------------------- lines of results


def test_lines_count_and_are_reported(old):
    lines = ResultLines(old / "lines", "table1").read()
    assert len(lines) == 18
    assert len(current_lines(find_table("table1"), lines)) == 18
    run_main("--report", "--results", "lines", main=paper.main)
    page = (old / "lines" / "README.md").read_text()
    values = [line["value"] for line in lines if line["method"] == "haarpool"]
    assert f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}" in page
