"""Datasets: where they are found, files in TU layout, QM7, statistics."""

import http.server
import os
import subprocess
import sys
import threading
import zipfile
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from haarpool.datasets import (
    as_graphs,
    download,
    find_dataset,
    known_datasets,
    places,
    read_graphs,
    stream_graphs,
    summary,
)
from haarpool.datasets.names import TU_NAMES
from haarpool.datasets.qm7 import ELEMENTS, read_qm7
from haarpool.errors import HaarPoolError

REAL = os.environ.get("HAARPOOL_DATA")
needs_data = pytest.mark.skipif(not REAL, reason="HAARPOOL_DATA is not set: no real datasets here")

# Two graphs: a path of three nodes and a pair. Edges stand out of order, one stands twice.
TINY = {
    "A": "4, 5\n2, 1\n1, 2\n2, 3\n3, 2\n5, 4\n1, 2\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "7\n-1\n",
    "node_labels": "3\n5\n3\n3\n9\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n",
    "edge_labels": "1\n2\n2\n4\n4\n1\n8\n",
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No data folder and no network, and a cache of its own."""
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HAARPOOL_TU_URL", "http://127.0.0.1:9")


def write(folder: Path, name="TINY", **changes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in (TINY | changes).items():
        path = folder / f"{name}_{kind}.txt"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
    return folder


def refused(*parts: str):
    """An error in one line that holds all of `parts`."""
    return pytest.raises(
        HaarPoolError, match="(?s)^(?!.*\n)" + "".join(f"(?=.*{p})" for p in parts)
    )


# ------------------------------------------------------------------ TU layout


def test_everything_in_tu_layout(tmp_path):
    graphs = read_graphs(write(tmp_path / "TINY" / "raw"))
    assert graphs.name == "TINY"
    assert graphs.start.tolist() == [0, 3, 5]
    assert graphs.edges.tolist() == [[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]
    assert graphs.columns["labels"].tolist() == [[3], [5], [3], [3], [9]]
    assert graphs.columns["attributes"][4].tolist() == [4.5, 5]
    # Of the edge that stands twice the first line counts.
    assert graphs.edge_columns["labels"][:, 0].tolist() == [2, 2, 4, 4, 1, 1]
    assert (graphs.task, graphs.classes) == ("classification", ("-1", "7"))
    assert graphs.targets.tolist() == [1, 0]


def test_task_is_found_or_forced(tmp_path):
    folder = write(tmp_path, graph_labels=None, graph_attributes="1, 2\nnan, 4\n")
    graphs = read_graphs(folder)
    assert (graphs.task, graphs.target_names) == ("regression", ("target 1", "target 2"))
    np.testing.assert_array_equal(graphs.targets, [[1, 2], [np.nan, 4]])
    assert graphs.is_labelled.all()
    with refused("labels of graphs for classification", "--task regression"):
        read_graphs(folder, task="classification")

    write(tmp_path, graph_attributes="0.5\n1.5\n")
    assert read_graphs(folder).classes == ("-1", "7")
    assert read_graphs(folder, task="regression").targets.tolist() == [[0.5], [1.5]]
    (folder / "TINY_graph_attributes.txt").unlink()
    assert read_graphs(folder, task="regression").targets.tolist() == [[7], [-1]]

    write(tmp_path, graph_labels="0.25\n0.5\n")
    assert read_graphs(folder).task == "regression"
    assert read_graphs(folder, task="classification").classes == ("0.25", "0.5")

    write(tmp_path, graph_labels="3\nnan\n")
    graphs = read_graphs(folder)
    assert (graphs.classes, graphs.targets.tolist()) == (("3",), [0, -1])
    assert graphs.is_labelled.tolist() == [True, False]

    write(tmp_path, graph_labels=None)
    graphs = read_graphs(folder)
    assert graphs.task is graphs.targets is None
    with refused("labels of graphs for regression", "add the file"):
        read_graphs(folder, task="regression")
    with refused("the task classification or regression", "'ranking'"):
        read_graphs(folder, task="ranking")


DAMAGE = {
    "a line cut off": ({"A": TINY["A"] + "4,"}, "2 numbers per line", "TINY_A.txt", "line 8: '4,'"),
    "a word": ({"A": "1, 2\n2, x\n"}, "TINY_A.txt", "line 2: '2, x'"),
    "a half": ({"A": "1, 2\n2, 1.5\n"}, "whole numbers", "line 2"),
    "no such node": ({"A": "1, 2\n1, 6\n"}, r"two of 1\.\.5", "line 2: 1, 6"),
    "across graphs": ({"A": "1, 2\n2, 4\n"}, "in one graph", "line 2: 2, 4"),
    "ids that fall": ({"graph_indicator": "1\n2\n1\n2\n2\n"}, "never fall", "line 3: 1"),
    "ids that skip": ({"graph_indicator": "1\n1\n1\n3\n3\n"}, "never fall or skip", "line 4: 3"),
    "ids from 0": ({"graph_indicator": "0\n0\n0\n1\n1\n"}, "ids from 1", "line 1: 0"),
    "no nodes": ({"graph_indicator": ""}, "ids from 1", "no lines"),
    "too few labels": ({"node_labels": "3\n"}, "5 lines, one per node", "node_labels", "1 lines"),
    "too few classes": ({"graph_labels": "3\n"}, "2 lines, one per graph", "graph_labels"),
    "too few edges": ({"edge_labels": "3\n"}, "7 lines, one per line of A", "edge_labels"),
    "a label as text": ({"node_labels": "3\nC\n3\n3\n9\n"}, "node_labels", "line 2: 'C'"),
    "NaN": ({"node_attributes": "1\n2\nnan\n4\n5\n"}, "finite", "node_attributes", "line 3: 'nan'"),
    "two classes": ({"graph_labels": "1, 2\n2, 3\n"}, "one label per line", "graph_labels"),
    "an empty line": ({"node_labels": "3\n\n3\n3\n9\n"}, "node_labels", "line 2: ''"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_names_file_and_line(name, tmp_path):
    changes, *parts = DAMAGE[name]
    with refused(*parts):
        read_graphs(write(tmp_path, **changes))


def test_whole_numbers_may_be_written_as_others(tmp_path):
    graphs = read_graphs(write(tmp_path, node_labels="3.0\n5\n3\n3\n9e0\n"))
    assert graphs.columns["labels"].tolist() == [[3], [5], [3], [3], [9]]


def test_out_of_a_zip_file(tmp_path):
    folder = write(tmp_path / "TINY")
    with zipfile.ZipFile(tmp_path / "OTHER.zip", "w") as packed:
        for path in folder.iterdir():
            packed.write(path, f"TINY/{path.name}")
    for source in (tmp_path / "OTHER.zip", "other"):
        assert read_graphs(source, tmp_path).digest() == read_graphs(folder).digest()
    (tmp_path / "OTHER.zip").write_bytes(b"PK nothing")
    with refused("readable text files", "OTHER.zip", "fetch them again"):
        read_graphs("OTHER", tmp_path)
    (folder / "TINY_A.txt").write_bytes(b"\xff\xfe")
    with refused("readable text files", "decode"):
        read_graphs(folder)


def test_a_digest_tells_edge_labels_apart(tmp_path):
    one = read_graphs(write(tmp_path)).digest()
    assert read_graphs(write(tmp_path)).digest() == one
    assert read_graphs(write(tmp_path, edge_labels="1\n2\n2\n4\n4\n1\n9\n")).digest() == one
    assert read_graphs(write(tmp_path, edge_labels="1\n9\n2\n4\n4\n1\n8\n")).digest() != one


def test_blocks_are_the_same_graphs(tmp_path):
    graphs = read_graphs(write(tmp_path))
    blocks = list(stream_graphs(tmp_path, block=1))
    assert [block.sizes.tolist() for block in blocks] == [[3], [2]]
    assert blocks[1].edges.tolist() == [[0, 1], [1, 0]]
    assert blocks[1].columns["labels"].tolist() == graphs.columns["labels"][3:].tolist()


# ------------------------------------------------------------------ places


def test_places_come_in_order(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        write(root / "TINY" / "raw")
    write(first / "Mutagenicity", "Mutagenicity")
    write(second / "MUTAG", "MUTAG")
    monkeypatch.setenv("HAARPOOL_DATA", str(second))
    assert find_dataset("TINY", first) == first / "TINY" / "raw"
    assert find_dataset("tiny") == second / "TINY" / "raw"
    assert find_dataset(first / "TINY") == first / "TINY" / "raw"
    assert find_dataset("MUTAGEN", first) == first / "Mutagenicity"
    assert find_dataset("mutag") == second / "MUTAG"
    assert "grakel" in find_dataset("mutag", first).parts


def test_mutag_ships_with_grakel(monkeypatch, tmp_path):
    graphs = read_graphs("MUTAG")
    assert (len(graphs), graphs.classes) == (188, ("-1", "1"))
    monkeypatch.setitem(places.GRAKEL, "MUTAG_A.txt", "0" * 64)
    with refused("sha256", "MUTAG_A.txt", "reinstall grakel"):
        read_graphs("MUTAG")
    # Where there is no grakel it is downloaded.
    monkeypatch.setattr(places, "find_spec", lambda _: None)
    with refused(
        "MUTAG here or at http://127.0.0.1:9/MUTAG.zip", "--root DIR or set HAARPOOL_DATA"
    ):
        read_graphs("MUTAG")


def test_names_that_nobody_knows(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "urlopen", None)  # nobody asks the network
    with refused("'PROTEIN'", "did you mean PROTEINS"):
        read_graphs("PROTEIN")
    with refused("--root DIR or set HAARPOOL_DATA"):
        read_graphs("some own data")
    write(tmp_path / "OWN")
    with refused("did you mean OWN"):
        read_graphs("OWNN", tmp_path)
    with refused("zzzzz", "has OWN"):
        read_graphs("zzzzz", tmp_path)
    with refused("which is not there", "check the path"):
        read_graphs("molecules.csv")
    (tmp_path / "EMPTY").mkdir()
    for source in ("EMPTY", tmp_path / "EMPTY"):
        with refused("EMPTY without NAME_A.txt", "check the folder"):
            read_graphs(source, tmp_path)


def test_columns_are_for_csv_files():
    with refused("a CSV file", "'MUTAG' together with columns"):
        read_graphs("MUTAG", targets=["y"])


def test_known_datasets(tmp_path):
    write(tmp_path / "OWN")
    write(tmp_path / "PROTEINS")
    known = known_datasets(tmp_path)
    assert known[0] == ("OWN", str(tmp_path / "OWN"))
    where = dict(known)
    assert where["PROTEINS"] == str(tmp_path / "PROTEINS")
    assert (where["MUTAG"], where["triangles"]) == ("grakel", "generated")
    assert where["NCI1"] == where["qm7"] == "download"
    assert len(where) == len(known)
    assert len({name.lower() for name in TU_NAMES}) == len(TU_NAMES) > 120


def test_nothing_heavy_is_loaded(tmp_path):
    write(tmp_path / "TINY")
    code = (
        "import sys\nfrom haarpool.datasets import read_graphs, summary\n"
        "import haarpool.features\nsummary(read_graphs(sys.argv[1]))\n"
        "print({'torch', 'torch_geometric', 'rdkit', 'sklearn', 'grakel'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, tmp_path / "TINY"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "set()\n"


def test_any_form_of_graphs(tmp_path):
    graphs = as_graphs(write(tmp_path))
    assert as_graphs(graphs) is graphs
    with refused("a list of PyG Data", "int"):
        as_graphs(3)
    with refused("a PyG Data", "in graph 0 int"):
        as_graphs([3])


# ------------------------------------------------------------------ download


@pytest.fixture
def server(tmp_path):
    """A folder, and the address at which it is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


def test_download_into_the_cache(server, tmp_path, monkeypatch):
    folder, address = server
    monkeypatch.setenv("HAARPOOL_TU_URL", address)
    source = write(tmp_path / "KKI", "KKI")
    with zipfile.ZipFile(folder / "KKI.zip", "w") as packed:
        for path in source.iterdir():
            packed.write(path, f"KKI/{path.name}")
    downloads = tmp_path / "cache" / "downloads"
    graphs = read_graphs("kki")
    assert graphs.digest() == read_graphs(source).digest()
    assert [path.name for path in downloads.iterdir()] == ["KKI"]
    assert dict(known_datasets())["KKI"] == str(downloads / "KKI")
    (folder / "KKI.zip").unlink()
    assert len(read_graphs("KKI")) == 2  # from the cache
    with refused("OHSU here or at", "404"):
        read_graphs("OHSU")
    (folder / "OHSU.zip").write_bytes(b"no zip file")
    with refused("OHSU here or at", "--root DIR"):
        read_graphs("OHSU")
    assert [path.name for path in downloads.iterdir()] == ["KKI"]


def test_a_server_that_never_answers(monkeypatch):
    asked = threading.Event()

    def hang(*_, **__):
        asked.set()
        release.wait(30)
        raise OSError

    release = threading.Event()
    monkeypatch.setattr(download, "urlopen", hang)
    monkeypatch.setattr(download, "PATIENCE", 0.05)
    with refused("DD here or at", "no answer"):
        read_graphs("DD")
    assert asked.is_set()
    release.set()


def test_qm7_is_downloaded_and_checked(server, tmp_path, monkeypatch):
    folder, address = server
    monkeypatch.setattr(download, "QM7_URL", f"{address}/qm7.mat")
    write_qm7(folder / "qm7.mat")
    with refused("QM7 here or at", "another file than the published one"):
        read_graphs("qm7")
    assert list((tmp_path / "cache" / "downloads").iterdir()) == []
    digest = sha256((folder / "qm7.mat").read_bytes()).hexdigest()
    monkeypatch.setattr(download, "QM7_SHA256", digest)
    assert len(read_graphs("QM7")) == 2


# ------------------------------------------------------------------ QM7


def write_qm7(path: Path, **changes) -> None:
    """Water and hydrogen cyanide, somewhat out of shape."""
    R = np.zeros((2, 4, 3))
    R[0, :3] = [[0, 0, 0], [1.8, 0, 0], [-0.5, 1.7, 0]]
    R[1, :3] = [[0, 0, 0], [2.0, 0, 0], [4.2, 0, 0]]
    Z = np.array([[8, 1, 1, 0], [1, 6, 7, 0]])
    savemat(path, {"R": R, "Z": Z, "T": [[-230.0, -310.0]]} | changes)


def test_qm7_by_hand(tmp_path):
    write_qm7(tmp_path / "qm7.mat")
    graphs = read_graphs("qm7", tmp_path)
    assert graphs.sizes.tolist() == [3, 3]
    assert graphs.targets.tolist() == [[-230], [-310]]
    assert graphs.default_features == "constant"
    matrix = graphs.batch[1].toarray()
    np.testing.assert_allclose(np.diag(matrix), 0.5 * np.array([1, 6, 7]) ** 2.4)
    np.testing.assert_allclose(matrix[1, 2], 42 / 2.2)
    assert graphs.columns["z"][:, 0].tolist() == [8, 1, 1, 1, 6, 7]
    atoms = graphs.columns["atoms"]
    assert atoms[:, : len(ELEMENTS)].argmax(1).tolist() == [3, 0, 0, 0, 1, 2]
    # The hydrogen of HCN sees carbon at 2.0 and nitrogen at 4.2 Bohr, and no oxygen.
    first = len(ELEMENTS)
    assert atoms[3, first + 1] == pytest.approx(np.exp(-((0.5 / 1.5) ** 2)))
    assert atoms[3, first + 2] == pytest.approx(np.exp(-((2.7 / 1.5) ** 2)))
    assert atoms[3, first + 3] == atoms[3, first] == 0


def test_qm7_atoms_do_not_depend_on_the_pose(tmp_path):
    write_qm7(tmp_path / "qm7.mat")
    found = loadmat(tmp_path / "qm7.mat")
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    order = [2, 0, 1, 3]  # padding stays behind
    moved = found["R"][:, order] @ turn + 3.0
    savemat(tmp_path / "moved.mat", {"R": moved, "Z": found["Z"][:, order], "T": found["T"]})
    one, other = read_qm7(tmp_path / "qm7.mat"), read_qm7(tmp_path / "moved.mat")
    nodes = np.array([2, 0, 1, 5, 3, 4])
    np.testing.assert_allclose(other.columns["atoms"], one.columns["atoms"][nodes], atol=1e-12)
    same = one.batch.adjacency.toarray()[nodes][:, nodes]
    np.testing.assert_allclose(other.batch.adjacency.toarray(), same, atol=1e-12)


def test_qm7_refuses(tmp_path):
    path = tmp_path / "qm7.mat"
    write_qm7(path)
    with refused("regression for qm7"):
        read_graphs(path, task="classification")
    write_qm7(path, T=[[1.0]])
    with refused("arrays R, Z and T", "damaged"):
        read_graphs(path)
    write_qm7(path, Z=[[9, 1, 1, 0], [1, 6, 7, 0]])
    with refused("H, C, N, O and S", "charge of 9"):
        read_graphs(path)
    write_qm7(path, T=[[1.0, np.nan]])
    with refused("H, C, N, O and S", "NaN"):
        read_graphs(path)
    path.write_bytes(b"nothing")
    with refused("arrays R, Z and T", "qm7.mat"):
        read_graphs(path)


@needs_data
def test_qm7_is_what_was_published():
    graphs = read_graphs("qm7", REAL)
    found = summary(graphs)
    assert found["graphs"] == 7165
    (energy,) = found["targets"].values()
    assert (round(energy["mean"], 2), round(energy["std"], 2)) == (-1538.04, 223.92)
    assert (energy["min"], round(energy["max"], 2)) == (-2192.0, -404.88)
    elements = np.bincount(graphs.columns["z"][:, 0])[list(ELEMENTS)]
    assert elements.tolist() == [61959, 35761, 6655, 5978, 297]
    # Row order differs, eigenvalues do not; float32 rounds the entries of X by up to 2e-5.
    X = loadmat(Path(REAL) / "QM7" / "raw" / "qm7.mat")["X"].astype(np.float64)
    for g in range(0, 7165, 20):
        size, edges = graphs.sizes[g], slice(*graphs.edge_start[g : g + 2])
        own = graphs.edge_weight[edges].reshape(size, size)
        theirs = np.linalg.eigvalsh(X[g, :size, :size])
        np.testing.assert_allclose(np.linalg.eigvalsh(own), theirs, rtol=0, atol=1e-5)


# ------------------------------------------------------------------ statistics


def test_summary_by_hand(tmp_path):
    graphs = read_graphs(write(tmp_path, A="1, 2\n2, 1\n4, 4\n"))
    found = summary(graphs)
    assert found["classes"] == {"-1": 1, "7": 1}
    assert found["nodes"] == {"mean": 2.5, "min": 2, "max": 3}
    assert found["edges"] == {"mean": 0.5, "min": 0, "max": 1}
    assert (found["isolated nodes"], found["graphs with isolated nodes"]) == (3, 2)
    assert (found["disconnected graphs"], found["most components"]) == (2, 2)
    assert (found["self-loops"], found["missing labels"], found["node labels"]) == (1, 0, 3)
    assert found["node columns"] == {"labels": 1, "attributes": 2}
    write(tmp_path, graph_labels=None, graph_attributes="1\nnan\n")
    found = summary(read_graphs(tmp_path))
    assert found["targets"] == {
        "target": {"mean": 1.0, "min": 1.0, "max": 1.0, "std": 0.0, "missing": 1}
    }
    assert found["missing labels"] == 1


# graphs, nodes, edges (mean, min, max), labels, isolated nodes, disconnected graphs, components
PUBLISHED = {
    "MUTAG": (188, (17.93, 10, 28), (19.79, 10, 33), [63, 125], 7, 0, 0, 1),
    "PROTEINS": (1113, (39.06, 4, 620), (72.82, 5, 1049), [663, 450], 3, 5, 46, 9),
    "NCI1": (4110, (29.87, 3, 111), (32.30, 2, 119), [2053, 2057], 37, 428, 580, 10),
    "NCI109": (4127, (29.68, 4, 111), (32.13, 3, 119), [2048, 2079], 38, 474, 608, 10),
    "MUTAGEN": (4337, (30.32, 4, 417), (30.77, 3, 112), [2401, 1936], 14, 2401, 297, 319),
}


@needs_data
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_table_of_the_paper(name):
    found = summary(read_graphs(name, REAL))
    assert PUBLISHED[name] == (
        found["graphs"],
        *((round(s["mean"], 2), s["min"], s["max"]) for s in (found["nodes"], found["edges"])),
        list(found["classes"].values()),
        found["node labels"],
        found["isolated nodes"],
        found["disconnected graphs"],
        found["most components"],
    )
