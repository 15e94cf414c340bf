"""`haarpool train` and `predict` on every kind of data."""

import csv
import json
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from haarpool import datasets
from haarpool.datasets import read_graphs
from haarpool.errors import HaarPoolError
from haarpool.report.record import read_test_part
from haarpool.training.run_folder import RunFolder
from helpers.commands import run_main
from helpers.files import write_rings_tu
from helpers.runs import train
from helpers.tolerances import LOOSER

pytestmark = pytest.mark.usefixtures("workplace")
SMALL = ("--arch", "GC8-HP-FC8", "--epochs", 2, "--quiet")
PARTS = ["C", "O", "N", "C(F)", "C(=O)", "c1ccccc1", "C1CC1", "C(C)", "S", "C(Cl)"]


def molecules(count, seed=0):
    rng = np.random.default_rng(seed)
    for i, parts in enumerate(rng.integers(0, len(PARTS), (count, 4))):
        smiles = "C" + "".join(PARTS[p] for p in parts)
        ring, oxygens = "ring" if 5 in parts else "none", (parts == 1).sum() - 0.5
        yield [f"m{i}", smiles, ring, f"{oxygens}", "" if i % 5 else f"{len(smiles)}.5"]


@pytest.fixture
def table():
    rows = [["name", "smiles", "kind", "oxygen", "length"], *molecules(80)]
    rows.insert(4, ["bad", "not a molecule", "none", "0.5", "1.5"])
    with open("mol.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return rows


def read(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_a_table_of_molecules_with_classes(table):
    out, err, _ = run_main("train", "mol.csv", "--target", "kind", *SMALL, "--split", "scaffold")
    skipped, mixed = err.splitlines()
    assert "line 5 'not a molecule'" in skipped
    assert "no graph of class 'none' in the validation part" in mixed  # the scaffold is the class
    config = json.loads(Path("runs/mol-1/config.json").read_text())
    assert config["data"]["classes"] == ["none", "ring"]
    err = run_main("predict", "runs/mol-1", "mol.csv", "--out", "new.csv").err
    assert "line 5" in err
    header, *rows = read("new.csv")
    assert header == ["line", "smiles", "prediction", "p(none)", "p(ring)"]
    assert len(rows) == 80
    assert [row[0] for row in rows[:5]] == ["2", "3", "4", "6", "7"]
    assert [row[1] for row in rows] == [row[1] for row in table[1:] if row[0] != "bad"]
    err = run_main("predict", "runs/mol-1", "mol.csv", "--strict", "--out", "x.csv", code=2).err
    assert "line 5" in err
    assert not Path("x.csv").exists()
    assert "test accuracy" in out


@pytest.mark.usefixtures("blank_report")
def test_spreadsheets_find_no_formula(table):
    """Names that start like one get an apostrophe; numbers such as -1 do not."""
    names = ["=HYPERLINK(A1)", "-C", "-1", "+"]
    rows = [("smiles", "@kind"), *((f"{'C' * n}", names[n % 4]) for n in range(1, 81))]
    for number, task in ((1, "classification"), (2, "regression")):
        if task == "regression":
            rows = [
                ("smiles", "=value"),
                *((smiles, n / 8 - 5) for n, (smiles, _) in enumerate(rows[1:])),
            ]
        with open("formula.csv", "w", newline="") as file:
            csv.writer(file).writerows(rows)
        run = f"runs/formula-{number}"
        run_main("train", "formula.csv", "--target", rows[0][1], "--task", task, *SMALL)
        run_main("report", run)  # it reads them again
        run_main("predict", run, "formula.csv", "--quiet", "--out", "new.csv")
        shown = run_main("predict", run, "formula.csv", "--quiet").out
        assert shown == Path("new.csv").read_text()
        header, *predicted = read("new.csv")
        _, *tested = read(f"{run}/test.csv")
        if task == "classification":
            cells = {row[2] for row in predicted} | {cell for row in tested for cell in row[2:4]}
            assert cells <= {"'=HYPERLINK(A1)", "'-C", "-1", "+"}
            assert {row[2] for row in tested} == {"'=HYPERLINK(A1)", "'-C", "-1", "+"}
            assert header[3:] == ["p(+)", "p(-1)", "p(-C)", "p(=HYPERLINK(A1))"]
        else:
            assert header == ["line", "smiles", "'=value"]
            assert min(float(row[2]) for row in tested) < 0


@pytest.mark.usefixtures("blank_report")
def test_a_class_may_be_named_like_the_cell_of_another():
    names = ["=A1", "'=A1", "''=A1"]
    with open("alike.csv", "w", newline="") as file:
        csv.writer(file).writerows(
            [("smiles", "kind"), *((f"{'C' * n}", names[n % 3]) for n in range(1, 61))]
        )
    run_main("train", "alike.csv", "--target", "kind", *SMALL)
    _, *tested = read("runs/alike-1/test.csv")
    assert {row[2] for row in tested} == {f"'{name}" for name in names}
    data = json.loads(Path("runs/alike-1/config.json").read_text())["data"]
    true, _ = read_test_part(RunFolder("runs/alike-1"), data)
    assert [f"'{data['classes'][c]}" for c in true] == [row[2] for row in tested]


def test_classes_are_in_every_part_by_default(table):
    Path("mol.csv").write_text(Path("mol.csv").read_text().replace("not a molecule", "CCC"))
    run_main("train", "mol.csv", "--target", "kind", "--strict", *SMALL, "--out", "run")
    config = json.loads(Path("run/config.json").read_text())
    assert config["training"]["split"] == "stratified"
    scaffold = ("--target", "kind", "--split", "scaffold", "--strict", *SMALL, "--out", "other")
    (line,) = run_main("train", "mol.csv", *scaffold, code=2).err.splitlines()
    assert "no graph of class 'none' in the validation part" in line
    assert "pass --split stratified, or leave out --strict" in line
    assert not Path("other").exists()
    run_main("train", "mol.csv", "--target", "oxygen", *SMALL, "--out", "values")
    assert json.loads(Path("values/config.json").read_text())["training"]["split"] == "random"


@pytest.mark.usefixtures("blank_report")
def test_the_only_column_besides_smiles_is_predicted(table):
    (line,) = run_main("train", "mol.csv", *SMALL, code=2).err.splitlines()
    assert (
        "4 besides SMILES: name, kind, oxygen, length; choose one or several with --target" in line
    )
    assert "name, kind, oxygen, length" in run_main("info", "mol.csv").out
    pairs = [f"{row[1]},{row[3]}" for row in table[1:]]
    Path("pairs.csv").write_text("\n".join(["SMILES,oxygen", *pairs]))
    out = run_main("train", "pairs.csv", *SMALL, "--out", "run").out
    assert out.startswith("target      oxygen\n")
    data = json.loads(Path("run/config.json").read_text())["data"]
    assert (data["target_names"], data["read"]["targets"]) == (["oxygen"], ["oxygen"])
    assert "regression" in run_main("info", "pairs.csv").out
    commas = [f"{row[1]};{row[3]};7" for row in table[1:]]
    Path("commas.csv").write_text("\n".join(["SMILES;oxygen, number;other", *commas]))
    train("commas.csv", "--target", "oxygen, number", *SMALL, "--out", "commas")
    data = json.loads(Path("commas/config.json").read_text())["data"]
    assert data["target_names"] == ["oxygen, number"]
    Path("smiles.csv").write_text("\n".join(["smiles", *(row[1] for row in table[1:])]))
    with mock.patch("haarpool.datasets.smiles.MoleculeParser") as parser:
        err = run_main("train", "smiles.csv", *SMALL, code=2).err
    assert err == (
        "haarpool: expected --target as a column of smiles.csv to predict, "
        "got no column besides SMILES; add a column of labels to the file\n"
    )
    parser.assert_not_called()  # molecules take long
    assert "missing labels" not in run_main("info", "smiles.csv").out


@pytest.mark.usefixtures("blank_report")
def test_predictions_of_stereoisomers_differ(table):
    small = ("--arch", "haarnet:width=8,levels=1", "--epochs", 1, "--quiet", "--out", "run")
    run_main("train", "mol.csv", "--target", "oxygen", *small)
    pairs = ["C[C@H](N)O", "C[C@@H](N)O", "F/C=C/F", "F/C=C\\F"]
    Path("pairs.csv").write_text("\n".join(["smiles", *pairs]) + "\n")
    run_main("predict", "run", "pairs.csv", "--out", "new.csv")
    _, *rows = read("new.csv")
    left, right, trans, cis = (float(row[2]) for row in rows)
    assert left != right
    assert trans != cis


@pytest.mark.usefixtures("blank_report")
def test_values_in_their_units_with_some_missing(table):
    run_main("train", "mol.csv", "--target", "oxygen,length", *SMALL, "--out", "run")
    config = json.loads(Path("run/config.json").read_text())
    assert config["data"]["task"] == "regression"
    assert config["data"]["target_names"] == ["oxygen", "length"]
    header, *rows = read("run/test.csv")
    assert header[2:] == [
        "target oxygen", "target length", "prediction oxygen", "prediction length",
    ]  # fmt: skip
    run_main("predict", "run", "mol.csv", "--out", "new.csv")
    header, *rows = read("new.csv")
    assert header == ["line", "smiles", "oxygen", "length"]
    lengths = np.array([float(row[3]) for row in rows])
    assert 5 < lengths.mean() < 40  # in characters, not in standard deviations


@pytest.mark.usefixtures("blank_report")
def test_few_labels(table):
    """Parts with one class have no ROC curve; R² of one value is null."""
    Path("few.csv").write_text(
        "smiles,y\n" + "".join(f"{'C' * (i + 1)}O,{i % 2}\n" for i in range(12))
    )
    for seed in range(3):
        out = run_main("train", "few.csv", "--target", "y", *SMALL, "--seed", seed, "--json").out
        assert set(json.loads(out)["scores"]) >= {"accuracy"}
    out = run_main(
        "train", "few.csv", "--target", "y", "--task", "regression", *SMALL, "--json"
    ).out
    assert "NaN" not in out
    assert set(json.loads(out)["scores"]) == {"mae", "rmse", "r2"}
    rows = [
        ["smiles", "y", "z"],
        *([f"{'C' * (i + 1)}O", i + 0.5, "" if i else 1.5] for i in range(12)),
    ]
    with open("two.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    codes = set()
    for seed in range(8):
        arguments = ("train", "two.csv", "--target", "y,z", *SMALL, "--seed", seed)
        _, err, code = run_main(*arguments, code=None)
        assert code == 0 or "a value of 'z' in every training part" in err
        codes.add(code)
    assert codes == {0, 2}  # without a value of z to learn from it is refused


@pytest.mark.slow
@pytest.mark.usefixtures("blank_report")
def test_many_blocks_are_the_same_as_one(table):
    """Predictions do not depend on which graphs stand together."""
    run_main("train", "mol.csv", "--target", "kind", *SMALL, "--out", "run")
    rows = [["smiles"], *([smiles] for _, smiles, *_ in molecules(3000, seed=1))]
    with open("many.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    with open("few.csv", "w", newline="") as file:
        csv.writer(file).writerows([rows[0], *rows[2001:2011]])
    run_main("predict", "run", "many.csv", "--out", "many-out.csv")
    run_main("predict", "run", "few.csv", "--out", "few-out.csv")
    many, few = read("many-out.csv"), read("few-out.csv")
    assert len(many) == 3001
    for one, other in zip(many[2001:2011], few[1:], strict=True):
        assert one[1:3] == other[1:3]
        np.testing.assert_allclose(
            np.array(one[3:], float), np.array(other[3:], float), rtol=LOOSER["other batches"]
        )


@pytest.mark.usefixtures("blank_report")
def test_a_folder_and_a_list(monkeypatch):
    monkeypatch.setenv("HAARPOOL_DATA", "")
    folder = write_rings_tu(Path("data"), "MINE")
    run_main("train", folder, *SMALL, "--features", "labels+degree", "--out", "run")
    out = run_main("predict", "run", folder).out
    assert len(out.splitlines()) == 241
    rng = np.random.default_rng(0)
    graphs = []
    for i in range(40):
        edges = torch.from_numpy(np.stack(np.triu(rng.random((6, 6)) < 0.5, 1).nonzero()))
        edges = torch.cat([edges, edges.flip(0)], 1)
        weights = torch.ones(edges.shape[1])
        graphs.append(
            Data(x=torch.rand(6, 2), edge_index=edges, edge_weight=weights, y=torch.tensor([i % 3]))
        )
    torch.save(graphs, "graphs.pt")
    run_main("train", "graphs.pt", *SMALL, "--split", "kfold:4", "--out", "list")
    result = json.loads(Path("list/result.json").read_text())
    assert result["repeats"] == 4
    for data in graphs:
        del data.y  # not needed to predict
    torch.save(graphs, "new.pt")
    out = run_main("predict", "list", "new.pt").out
    assert out.splitlines()[0] == "graph,prediction,p(0),p(1),p(2)"
    graphs[7].x[0, 0] = 3e38  # overflows in the network
    torch.save(graphs, "new.pt")
    err = run_main("predict", "list", "new.pt", code=2).err
    assert "expected finite predictions, got NaN or infinity for graph 7 of new; check" in err


@pytest.mark.slow
@pytest.mark.usefixtures("tu_graphs")  # skips where there are none
@pytest.mark.parametrize("name", ["qm7", "PROTEINS", "MUTAGEN"])
def test_the_real_datasets(name):
    run_main("train", name, "--preset", "paper", "--epochs", 1, "--quiet", "--out", "run")
    assert Path("run/report.html").stat().st_size > 20_000
    config = json.loads(Path("run/config.json").read_text())
    graphs = {"qm7": 7165, "PROTEINS": 1113, "MUTAGEN": 4337}[name]
    assert config["data"]["summary"]["graphs"] == graphs
    result = json.loads(Path("run/result.json").read_text())
    if name == "qm7":  # in kcal/mol, and better than the mean
        assert 10 < result["scores"]["mae"]["test"]["mean"] < 224


@pytest.mark.usefixtures("tu_graphs", "blank_report")
def test_preset_paper_pins_its_clusters_and_takes_another_method():
    """Its option of `spectral` does not reach a method that does not know it."""
    arguments = ("train", "MUTAG", "--preset", "paper", "--epochs", 1, "--quiet", "--out")
    run_main(*arguments, "paper")
    run_main(*arguments, "other", "--method", "matching")
    paper, other = (
        json.loads(Path(run, "config.json").read_text())["training"]["chain"]
        for run in ("paper", "other")
    )
    assert (paper["method"], paper["sizes"], paper["by_size"]) == ("spectral", "paper", False)
    assert other == {k: v for k, v in paper.items() if k != "by_size"} | {"method": "matching"}


@pytest.mark.slow
@pytest.mark.usefixtures("blank_report")
def test_generated_triangles(monkeypatch):
    """Without data and without network; the published split is the default."""
    monkeypatch.setenv("HAARPOOL_DATA", "")
    arch = ("--arch", "GIN16-HP-GIN16-MP", "--domain", "vertex")
    run_main("train", "triangles", *arch, "--epochs", 1, "--quiet", "--out", "run")
    result = json.loads(Path("run/result.json").read_text())
    assert result["graphs"] == {"train": [30000], "validation": [5000], "test": [10000]}
    config = json.loads(Path("run/config.json").read_text())
    assert config["training"]["split"] == "given"
    assert config["data"]["features"] == "degree (15)"


@pytest.mark.usefixtures("blank_report")
def test_without_a_dataset_digits_are_used(without_data, monkeypatch):
    """They need no network."""
    monkeypatch.setattr("haarpool.datasets.locations.fetch", None)  # any download would fail
    result = train(*SMALL, "--out", "run")
    assert result["dataset"] == "digits"
    config = json.loads(Path("run/config.json").read_text())
    assert config["data"]["read"]["source"] == "digits"
    assert config["data"]["features"] == "x (3, standardised), degree (9)"
    rows = run_main("predict", "run", "--quiet").out.splitlines()
    assert len(rows) == 1798  # the dataset of the run
    # What the report draws of the graph besides its chain.
    saved, graphs = json.loads(Path("run/result.json").read_text()), read_graphs("digits")
    example = saved["example_graph"]
    assert saved["example_positions"] == graphs.positions(example).tolist()
    nodes = slice(*graphs.start[example : example + 2])
    assert saved["example_signal"] == graphs.columns["x"][nodes, 0].tolist()


def test_positions_of_an_example_graph_are_rounded():
    from haarpool.training.results import _rounded

    assert _rounded(np.array([[500_000.123456, 0], [500_012.0, 1.23456]])) == [
        [500_000.123, 0],
        [500_012, 1.235],
    ]
    assert _rounded(np.array([[7.0, 1e-9]])) == [[7, 0]]
    assert _rounded(None) is None


def test_a_dataset_that_is_missing_is_not_replaced(without_data, monkeypatch):
    def unreachable(*_):
        raise HaarPoolError("MUTAG", "no network", "download it elsewhere")

    monkeypatch.setattr("haarpool.datasets.locations.fetch", unreachable)
    assert "download it elsewhere" in run_main("train", "MUTAG", *SMALL, code=2).err
    monkeypatch.setenv("HAARPOOL_DATA", "data")
    for name in ("MUTAG", "digits"):
        Path("data", name, "raw").mkdir(parents=True)
        assert f"{name} without NAME_A.txt" in run_main("train", name, *SMALL, code=2).err
    assert "digits without NAME_A.txt" in run_main("train", *SMALL, code=2).err


@pytest.mark.usefixtures("blank_report")
def test_predictions_for_labels_that_training_did_not_have(monkeypatch):
    blocks = partial(datasets.stream_graphs, block=50)
    monkeypatch.setattr(datasets, "stream_graphs", blocks)
    folder = write_rings_tu(Path("data"), "MINE")
    train("data/MINE", *SMALL, "--out", "run")
    path = folder / "MINE_node_labels.txt"
    _, *others, _ = path.read_text().splitlines()
    path.write_text("\n".join(["77", *others, "78"]))  # in two blocks
    predicted = run_main("predict", "run", "data/MINE", "--quiet")
    assert len(predicted.out.splitlines()) == 241
    assert predicted.err.count("\n") == 1
    assert predicted.err == (
        "haarpool: nodes of MINE have a label that the training data do not have, "
        "such as 77 in graph 0: it is encoded as zeros\n"
    )


@pytest.mark.usefixtures("blank_report")
def test_predictions_do_not_need_labels():
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.rand(2, 3), edge_index=edge, y=torch.tensor([i % 2])) for i in range(30)]
    torch.save(graphs, "train.pt")
    train("train.pt", *SMALL, "--out", "run")
    for data in graphs:
        data.y = torch.tensor([3, 5])  # not the labels that it was trained on
    torch.save(graphs, "new.pt")
    assert len(run_main("predict", "run", "new.pt", "--quiet").out.splitlines()) == 31
