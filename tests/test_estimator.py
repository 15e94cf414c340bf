"""Estimators in the style of scikit-learn."""

import csv
import inspect
import pickle
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import sklearn.exceptions
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

import haarpool as hp
from haarpool import HaarClassifier, HaarRegressor
from haarpool.cli.flags import shell_words
from haarpool.datasets import as_graphs
from haarpool.training.config import RunConfig
from haarpool.training.presets import BEST
from helpers.commands import run_main
from helpers.graphs import rings_and_paths
from helpers.tolerances import LOOSER

ARTEFACTS = Path(__file__).parent / "artefacts" / "0.1.0"
FAST = {
    "device": "cpu",
    "arch": "GC16-HP-FC16",
    "epochs": 40,
    "lr": 0.02,
    "dropout": 0.0,
    "batch_size": 16,
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))


def test_a_classifier_learns_predicts_and_is_saved(tmp_path):
    graphs, ring, _ = rings_and_paths()
    names = np.where(ring, "ring", "path")
    model = HaarClassifier(**FAST).fit(graphs, names)
    assert model.score(graphs, names) == 1.0
    assert model.predict(graphs).tolist() == names.tolist()
    probability = model.predict_proba(graphs)
    assert probability.shape == (60, 2)
    np.testing.assert_allclose(probability.sum(1), 1)
    assert model.classes_.tolist() == ["path", "ring"]
    model.save(tmp_path / "run")
    again = hp.load(tmp_path / "run")
    assert isinstance(again, HaarClassifier)
    assert np.array_equal(again.predict_proba(graphs), probability)
    again.save(tmp_path / "copy")  # and once more
    assert np.array_equal(hp.load(tmp_path / "copy").predict_proba(graphs), probability)
    torch.save(graphs, tmp_path / "graphs.pt")
    out = run_main("predict", tmp_path / "run", tmp_path / "graphs.pt").out
    lines = [line.split(",") for line in out.splitlines()]
    assert lines[0] == ["graph", "prediction", "p(path)", "p(ring)"]
    assert [line[1] for line in lines[1:]] == names.tolist()
    np.testing.assert_allclose(
        np.array([line[2:] for line in lines[1:]], float),
        probability,
        rtol=LOOSER["six digits"],
        atol=1e-12,
    )


@pytest.mark.slow
def test_a_regressor_answers_in_the_units_of_its_labels(tmp_path):
    graphs, _, size = rings_and_paths()
    model = HaarRegressor(**FAST | {"arch": "2GC16-SUM-FC16-FC16", "epochs": 150})
    value = 1000 + 50 * size
    model.fit(graphs, value)
    assert model.predict(graphs).shape == (60,)
    assert np.abs(model.predict(graphs) - value).mean() < 15
    assert model.score(graphs, value) > 0.95
    model.save(tmp_path / "run")
    assert np.array_equal(hp.load(tmp_path / "run").predict(graphs), model.predict(graphs))


@pytest.mark.slow
def test_several_values_and_missing_ones():
    graphs, ring, size = rings_and_paths()
    values = np.stack([size, 10.0 * ring], axis=1)
    known = values.copy()
    known[::7, 0], known[3::7, 1] = np.nan, np.nan
    known[5] = np.nan  # this graph has no label at all
    model = HaarRegressor(**FAST | {"arch": "2GC16-SUM-FC16-FC16", "epochs": 150})
    with pytest.warns(hp.HaarPoolWarning, match="1 of 60"):
        model.fit(graphs, known)
    assert model.predict(graphs).shape == (60, 2)
    assert np.abs(model.predict(graphs) - values).mean() < 0.7
    assert np.isfinite(model.score(graphs, known))


def test_several_targets_with_two_classes(tmp_path):
    graphs, ring, size = rings_and_paths()
    labels = np.stack([ring, size > np.median(size)], axis=1).astype(float)
    known = labels.copy()
    known[::7, 0], known[3::7, 1] = np.nan, np.nan
    model = HaarClassifier(**FAST | {"arch": "2GC16-SUM-FC16-FC16"}, class_weights=True)
    model.fit(graphs, known)
    assert model.classes_.tolist() == [0, 1]
    probability = model.predict_proba(graphs)
    assert probability.shape == (60, 2)
    predicted = model.predict(graphs)
    np.testing.assert_array_equal(predicted, probability > 0.5)
    assert predicted.dtype.kind == "i"
    assert (predicted == labels).mean() > 0.9
    score = np.mean([roc_auc_score(labels[:, t], probability[:, t]) for t in range(2)])
    assert model.score(graphs, labels) == pytest.approx(score)
    model.save(tmp_path / "run")
    again = hp.load(tmp_path / "run")
    assert isinstance(again, HaarClassifier)
    np.testing.assert_array_equal(again.predict_proba(graphs), probability)
    for data, row in zip(graphs, known, strict=True):
        data.y = torch.tensor(row).reshape(1, -1)
    assert model.score(graphs) == pytest.approx(model.score(graphs, known))
    values = HaarRegressor(**FAST | {"epochs": 2}).fit(graphs)
    assert values.predict(graphs).shape == (60, 2)
    for wrong in (labels + 1, labels.astype(str).astype(object) + "x"):
        with pytest.raises(hp.HaarPoolError, match="0, 1 or NaN"):
            model.fit(graphs, wrong)
    with pytest.raises(hp.HaarPoolError, match="labels for multilabel"):
        again.score(graphs, ring)
    one = HaarClassifier(**FAST | {"epochs": 2}).fit(
        graphs, ring[:, None]
    )  # one target in a column
    assert one.predict(graphs).shape == (60,)


def test_an_ensemble(tmp_path):
    graphs, ring, size = rings_and_paths()
    short = FAST | {"epochs": 3}
    model = HaarClassifier(**short, ensemble=3).fit(graphs, ring)
    members = model.trained.predict_members(as_graphs(graphs))
    assert members.shape == (3, 60, 2)
    np.testing.assert_array_equal(model.predict_proba(graphs), members.mean(axis=0))
    spread = model.predict_uncertainty(graphs)
    assert spread.shape == (60,)
    chosen = members.mean(axis=0).argmax(axis=1)
    expected = members[:, np.arange(60), chosen].std(axis=0, ddof=1)
    np.testing.assert_allclose(spread, expected)
    model.save(tmp_path / "run")
    again = hp.load(tmp_path / "run")
    assert again.get_params()["ensemble"] == 3
    np.testing.assert_array_equal(again.predict_uncertainty(graphs), spread)
    values = HaarRegressor(**short, ensemble=2).fit(graphs, np.stack([size, ring], axis=1))
    assert values.predict_uncertainty(graphs).shape == (60, 2)
    with pytest.raises(hp.HaarPoolError, match="fit with ensemble=5"):
        HaarClassifier(**short).fit(graphs, ring).predict_uncertainty(graphs)


@pytest.mark.slow
def test_labels_of_the_graphs_themselves():
    graphs, ring, _ = rings_and_paths()
    for data, label in zip(graphs, ring, strict=True):
        data.y = torch.tensor([label])
    model = HaarClassifier(**FAST).fit(graphs)
    assert model.score(graphs) == 1.0
    assert model.predict(graphs[:2]).tolist() == [0, 1]
    assert (
        HaarRegressor(**FAST | {"epochs": 150}).fit(graphs).score(graphs) > 0.9
    )  # classes as numbers


@pytest.mark.slow
def test_graphs_without_label_are_left_out():
    graphs, ring, _ = rings_and_paths()
    some = ring.astype(float)
    some[:20] = np.nan
    with pytest.warns(hp.HaarPoolWarning, match="20 of 60"):
        model = HaarClassifier(**FAST).fit(graphs, some)
    assert model.classes_.tolist() == [0, 1]
    assert model.score(graphs, some) == 1.0
    names = np.array([None] * 20 + ["ring" if one else "path" for one in ring[20:]], object)
    with pytest.warns(hp.HaarPoolWarning, match="20 of 60"):
        assert HaarClassifier(**FAST).fit(graphs, names).score(graphs, names) == 1.0
    for data, label in zip(graphs, ring, strict=True):
        data.y = torch.tensor([int(label)])
    for data in graphs[40:]:
        del data.y
    assert model.score(graphs) == 1.0
    with pytest.warns(hp.HaarPoolWarning, match="20 of 60"):
        model = HaarRegressor(**FAST | {"epochs": 150}).fit(graphs)
    assert np.abs(model.predict(graphs) - ring).mean() < 0.2  # not drawn to either class


@pytest.mark.slow
def test_cross_validation_of_scikit_learn():
    graphs, ring, size = rings_and_paths()
    assert (cross_val_score(HaarClassifier(**FAST), graphs, ring, cv=3) == 1).all()
    model = HaarRegressor(**FAST | {"arch": "2GC16-SUM-FC16-FC16"})
    assert (cross_val_score(model, graphs, size, cv=3) > 0.5).all()


def test_a_dataset_by_name():
    model = HaarClassifier(**FAST | {"epochs": 3}).fit("rings")
    assert 0.5 < model.score("rings") < 1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_model_and_leaves_torch_alone():
    graphs, ring, _ = rings_and_paths()
    torch.manual_seed(5)
    before = torch.rand(3)
    torch.manual_seed(5)
    one = HaarClassifier(**FAST | {"dropout": 0.5}).fit(graphs, ring)
    assert torch.equal(torch.rand(3), before)
    two = HaarClassifier(**FAST | {"dropout": 0.5}).fit(graphs, ring)
    assert np.array_equal(one.predict_proba(graphs), two.predict_proba(graphs))


def test_parameters_in_the_way_of_scikit_learn():
    model = HaarClassifier(**FAST, validation=0.2)
    assert model.get_params()["validation"] == 0.2
    copy = clone(model.set_params(epochs=2))
    assert copy.get_params() == model.get_params()
    assert repr(copy).startswith("HaarClassifier(arch='GC16-HP-FC16', batch_size=16")
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(epoch=3)


@pytest.mark.parametrize("cls", [HaarClassifier, HaarRegressor])
def test_every_setting_of_a_run_is_a_parameter(cls):
    """With the defaults of the preset "best"."""
    others = {"validation", "device", "progress", "task"}
    parameters = inspect.signature(cls).parameters
    assert set(cls().get_params()) == set(parameters)
    settings = {one.name: one for one in fields(RunConfig) if one.name not in ("repeats", "split")}
    assert [name for name in parameters if name not in others] == list(settings)
    chain = settings.pop("chain")
    assert (chain.default_factory(), parameters["chain"].default) == ({}, None)
    for name, one in settings.items():
        assert parameters[name].annotation == one.type
        assert parameters[name].default == BEST.get(name, one.default)


def test_pipelines_and_fitted_estimators():
    graphs, ring, _ = rings_and_paths(12)
    pipeline = make_pipeline(HaarClassifier(**FAST | {"epochs": 2}))
    for estimator in (pipeline, HaarClassifier(), HaarRegressor()):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            check_is_fitted(estimator)
    assert pipeline.fit(graphs, ring).predict(graphs).shape == (12,)
    check_is_fitted(pipeline)
    check_is_fitted(pipeline[-1])
    with pytest.raises(sklearn.exceptions.NotFittedError, match="call fit first"):
        HaarRegressor().predict(graphs)


def test_r2_is_nan_where_it_is_not_defined():
    graphs, _, size = rings_and_paths(12)
    model = HaarRegressor(**FAST | {"epochs": 2}).fit(graphs, size)
    assert np.isnan(model.score(graphs[:1], size[:1]))
    assert np.isnan(model.score(graphs, np.ones(12)))
    with pytest.raises(hp.HaarPoolError, match="pass y"):
        model.score(graphs)
    with pytest.raises(hp.HaarPoolError):
        model.score(graphs, np.full(12, np.nan))


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        ([False, True], bool),
        ([0, 1], np.int64),
        ([-1, 7], np.int32),
        ([1, 255], np.uint8),
        ([0.5, 1.5], np.float64),
        ([0.1, 2.0], np.float32),
        (["path", "ring"], "<U4"),
        (["10", "9"], "<U2"),
        (["path", "ring"], object),
    ],
)
def test_classes_keep_their_dtype(classes, dtype, tmp_path):
    graphs, ring, _ = rings_and_paths()
    y = np.array(classes, dtype)[ring]
    model = HaarClassifier(**FAST).fit(graphs, y)
    model.save(tmp_path / "run")
    for one in (model, hp.load(tmp_path / "run")):
        predicted = one.predict(graphs)
        assert one.classes_.dtype == predicted.dtype == y.dtype
        np.testing.assert_array_equal(one.classes_, np.unique(y))
        np.testing.assert_array_equal(predicted, y)
        assert one.score(graphs, y) == 1


@pytest.mark.parametrize(
    ("classes", "missing", "expected"),
    [
        ([False, True], None, bool),
        ([3, 4], None, np.int64),
        ([0.0, 1.0], float("nan"), np.float64),
        (["path", "ring"], None, object),
        (["path", "ring"], float("nan"), object),
    ],
)
def test_classes_keep_their_dtype_beside_missing_labels(classes, missing, expected):
    graphs, ring, _ = rings_and_paths(12)
    y = [classes[int(one)] for one in ring[:8]] + [missing] * 4
    with pytest.warns(hp.HaarPoolWarning, match="4 of 12"):
        model = HaarClassifier(**FAST | {"epochs": 1}).fit(graphs, y)
    assert model.classes_.dtype == expected
    assert model.classes_.tolist() == classes


def test_scores_of_labels_in_another_form():
    graphs, ring, _ = rings_and_paths()
    is_ring = ring.astype(bool)
    model = HaarClassifier(**FAST).fit(graphs, is_ring)
    forms = (is_ring, ring, ring.astype(float), is_ring.astype(str))
    assert [model.score(graphs, y) for y in forms] == [1, 1, 1, 1]
    assert model.score(graphs, 1 - ring) == model.score(graphs, ring.astype(str)) == 0
    for data, label in zip(graphs, is_ring, strict=True):
        data.y = torch.tensor([label])
    assert model.score(graphs) == 1


def test_a_model_of_version_0_1_0_has_the_classes_of_that_time():
    model = hp.load(ARTEFACTS / "classification", device="cpu")
    assert model.classes_.tolist() == ["fused", "linked"]
    with open(ARTEFACTS / "classification.csv") as file:
        expected = [row["prediction"] for row in csv.DictReader(file)]
    assert model.predict("rings").tolist() == expected


def test_a_damaged_dtype_of_classes(tmp_path):
    graphs, ring, _ = rings_and_paths(12)
    HaarClassifier(**FAST | {"epochs": 1}).fit(graphs, ring).save(tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    path.write_text(path.read_text().replace('"class_dtype": "int64"', '"class_dtype": "int65"'))
    with pytest.raises(hp.HaarPoolError, match=r"an undamaged config.json"):
        hp.load(tmp_path / "run")


def test_labels_that_are_infinite_or_of_several_kinds():
    graphs, ring, size = rings_and_paths(12)
    classifier, regressor = HaarClassifier(**FAST), HaarRegressor(**FAST)
    for infinite in (np.inf, -np.inf):
        y = np.where(np.arange(12) == 5, infinite, ring)
        with pytest.raises(hp.HaarPoolError, match=r"got -?inf for graph 5; .* pass NaN"):
            classifier.fit(graphs, y)
        with pytest.raises(hp.HaarPoolError, match=r"got -?inf .* graph 5; .* value is NaN"):
            regressor.fit(graphs, y)
        with pytest.raises(hp.HaarPoolError, match=r"0, 1 or NaN as labels .* got -?inf"):
            classifier.fit(graphs, np.stack([ring, y], axis=1))
    model = HaarRegressor(**FAST | {"epochs": 1}).fit(graphs, size)
    with pytest.raises(hp.HaarPoolError, match="got inf"):
        model.score(graphs, np.full(12, np.inf))
    for mixed, kinds in (([0, "a"] * 6, "int and str"), ([b"a", b"b"] * 6, "bytes")):
        with pytest.raises(hp.HaarPoolError, match=f"of one kind, got {kinds}; convert"):
            classifier.fit(graphs, np.array(mixed, object))


def test_labels_that_are_all_missing():
    graphs, ring, _ = rings_and_paths(12)
    message = r"labels in y, got only missing ones \(None or NaN\); pass y with the labels"
    for estimator in (HaarClassifier, HaarRegressor):
        model = estimator(**FAST | {"epochs": 1}).fit(graphs, ring)
        for y in ([np.nan] * 12, np.full((12, 2), np.nan), np.array([None] * 12)):
            with pytest.raises(hp.HaarPoolError, match=message):
                model.fit(graphs, y)
            with pytest.raises(hp.HaarPoolError, match=message):
                model.score(graphs, y)


def test_labels_of_the_graphs_that_are_not_needed_may_be_anything():
    graphs, ring, size = rings_and_paths(12)
    for data, value in zip(graphs, size, strict=True):
        data.y = torch.tensor([int(value), 2 * int(value), int(value) % 5])
    fast = FAST | {"epochs": 2}
    model = HaarClassifier(**fast).fit(graphs, ring)
    assert model.predict(graphs).shape == (12,)
    assert model.predict_proba(graphs).shape == (12, 2)
    values = HaarRegressor(**fast).fit(graphs)
    assert values.predict(graphs).shape == (12, 3)
    assert values.score(graphs) < 1
    with pytest.raises(hp.HaarPoolError, match=r"pass them to HaarRegressor$"):
        HaarClassifier(**fast).fit(graphs)


def test_messages_name_only_parameters_of_estimators():
    graphs, _, _ = rings_and_paths(6)
    for model, y in (
        (HaarClassifier(**FAST), None),
        (HaarRegressor(**FAST), None),
        (HaarClassifier(**FAST), ["a"] * 6),
        (HaarClassifier(**FAST), [None] * 6),
        (HaarClassifier(**FAST), [[1, 0]] * 6),
        (HaarRegressor(**FAST), [np.nan] * 6),
    ):
        with pytest.raises(
            hp.HaarPoolError, match=r"; (pass y|choose other targets$|.*pass them to HaarR)"
        ):
            model.fit(graphs, y)


def test_errors():
    graphs, ring, _ = rings_and_paths(6)
    with pytest.raises(hp.HaarPoolError, match="call fit first"):
        HaarClassifier().predict(graphs)
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch'"):
        HaarClassifier(epoch=3)
    with pytest.raises(hp.HaarPoolError, match=r"validation in \(0, 1\)"):
        HaarClassifier(validation=0).fit(graphs, ring)
    with pytest.raises(hp.HaarPoolError, match="6 labels"):
        HaarClassifier(**FAST).fit(graphs, ring[:3])
    for wrong in (1, np.zeros((6, 0)), np.zeros((6, 2, 2))):
        with pytest.raises(hp.HaarPoolError, match=r"of shape \(G,\) or \(G, T\)"):
            HaarRegressor(**FAST).fit(graphs, wrong)
    with pytest.raises(hp.HaarPoolError, match="for classes pass them to HaarClassifier"):
        HaarRegressor(**FAST).fit(graphs, ["a"] * 6)
    with pytest.raises(hp.HaarPoolError, match="labels of the graphs"):
        HaarClassifier(**FAST).fit(graphs)
    with pytest.raises(hp.HaarPoolError, match="at least two classes"):
        HaarClassifier(**FAST).fit(graphs, ["a"] * 6)
    with pytest.raises(hp.HaarPoolError, match="at least 2 graphs"):
        HaarRegressor(**FAST).fit(graphs[:1], [1.0])
    for data in graphs:
        data.y = torch.tensor([0.5])
    with pytest.raises(
        hp.HaarPoolError, match=r"pass y with classes, or pass them to HaarRegressor$"
    ):
        HaarClassifier(**FAST).fit(graphs)
    model = HaarClassifier(**FAST).fit(graphs, ring)
    with pytest.raises(hp.HaarPoolError, match="pass y"):
        model.score(graphs)
    other = [Data(x=torch.ones(3, 5), edge_index=torch.zeros(2, 0, dtype=torch.long))]
    with pytest.raises(hp.HaarPoolError, match="3 columns 'x'"):
        model.predict(other)


def test_errors_of_reading_say_what_an_estimator_takes(tmp_path, monkeypatch):
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    path = tmp_path / "file.csv"
    path.write_text("molecule,label\nC,0\n")
    read = re.escape("pass haarpool.datasets.read_graphs(..., ")
    for model in (HaarClassifier(**FAST), HaarRegressor(**FAST)):
        with pytest.raises(hp.HaarPoolError, match=rf'; {read}root="DIR"\) or set') as caught:
            model.fit("NOPE")
        assert "; pass --root DIR or set" in caught.value.in_words(shell_words)
        copy = pickle.loads(pickle.dumps(caught.value))
        assert str(copy) == str(caught.value)
        with pytest.raises(hp.HaarPoolError, match=rf'expected smiles as .*{read}smiles="COLUMN"'):
            model.fit(path)
    model = HaarClassifier(**FAST | {"epochs": 1}).fit("rings")
    for method in (model.predict, model.score):
        with pytest.raises(hp.HaarPoolError, match=rf'; {read}root="DIR"\) or set'):
            method("NOPE")


def test_errors_about_the_labels_of_a_table_say_what_an_estimator_takes(tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    path = tmp_path / "file.csv"
    path.write_text("smiles,label\n" + "C,a\nCC,b\n" * 6)
    with pytest.raises(hp.HaarPoolError, match=r"line 2: 'a'; .* pass them to HaarClassifier$"):
        HaarRegressor(**FAST).fit(path)
    path.write_text("smiles,label\n" + "".join(f"C,{i}\n" for i in range(30)))
    with pytest.raises(hp.HaarPoolError, match=r'graphs\(..., task="classification"\), or regr'):
        HaarClassifier(**FAST).fit(path)
    path.write_text("smiles,a,b\n" + "C,1,2\nCC,2,1\n" * 6)
    columns = r'; pass y, or haarpool.datasets.read_graphs\(..., targets="COLUMN"\)$'
    with pytest.raises(hp.HaarPoolError, match=columns):
        HaarClassifier(**FAST).fit(path)


@pytest.mark.parametrize("estimator", [HaarClassifier, HaarRegressor])
def test_the_only_column_of_a_table_besides_smiles_is_predicted(estimator, tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    smiles = ["C" * n + end for n in range(1, 13) for end in ("C", "O")]
    rows = [f"{text},{int(text.endswith('O'))}" for text in smiles]
    path = tmp_path / "file.csv"
    path.write_text("\n".join(["smiles,label", *rows]))
    model = estimator(**FAST | {"epochs": 1}).fit(path)
    assert model.predict(path).shape == (24,)
    path.write_text("\n".join(["smiles,label,other", *(f"{row},1" for row in rows)]))
    with pytest.raises(hp.HaarPoolError, match=r"expected labels .* pass y"):
        estimator(**FAST).fit(path)
