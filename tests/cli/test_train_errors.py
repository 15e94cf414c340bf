"""Bad input to `train`, `predict` and `info`: exit code 2, one line, and nothing left behind."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from helpers.commands import run_main
from helpers.files import write_rings_tu

pytestmark = pytest.mark.usefixtures("without_data", "blank_report")


def error_of(*arguments, **environment):
    """The one line that a command says when it refuses."""
    out, err, _ = run_main(*arguments, code=2, **environment)
    # What it prints before it trains.
    assert all(line.startswith(("target ", "features ", "plan ")) for line in out.splitlines())
    assert err.startswith("haarpool: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert not Path("runs").exists()
    return err


@pytest.fixture
def files(tmp_path):
    """A dataset in TU layout that may be damaged."""
    return write_rings_tu(tmp_path / "data", "MINE")


def test_no_such_dataset():
    assert "did you mean MUTAG?" in error_of("train", "MUTAH")
    assert "did you mean" not in error_of("train", "qqqqqqqqq")


@pytest.mark.parametrize("command", [
    ("--arch", "haarnet:width=65536,depth=64"), ("--arch", "2GC65536-HP-FC64"),
    ("--width", 65536), ("--arch", "GC-HP-FC", "--width", 10**9),
])  # fmt: skip
def test_networks_that_no_machine_holds(command):
    err = error_of("train", "rings", *command)
    assert "--arch with up to 1,073,741,824 weights" in err or "--width in 1..65536" in err


def test_no_network():
    """A dataset that would have to come from a server that is not there."""
    err = error_of("train", "ENZYMES", HAARPOOL_TU_URL="http://127.0.0.1:9/")
    assert "ENZYMES" in err
    assert "--root" in err


def test_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "NAME_A.txt" in error_of("train", tmp_path / "empty")
    assert "NAME_A.txt" in error_of("info", tmp_path / "empty")


def test_truncated_files_name_file_and_line(files):
    for name, expected in {
        "A": "line 51", "graph_indicator": "line 51", "graph_labels": "50", "node_labels": "50",
    }.items():  # fmt: skip
        path = files / f"MINE_{name}.txt"
        whole = path.read_text()
        cut = "\n".join(whole.splitlines()[:50]) + "\n"
        path.write_text(cut + ("17," if "line" in expected else ""))
        err = error_of("train", files.parent)
        assert expected in err
        assert path.name in err
        path.write_text(whole)


def test_files_of_other_programs(files):
    """Everything that is unusual at once: it trains."""
    for path in files.glob("*.txt"):
        text = path.read_text().replace(",", "")
        if path.name == "MINE_graph_indicator.txt":
            text = "\n".join(str(2 * int(line)) for line in text.splitlines())
        if "labels" in path.name:
            text = "\n".join(f"kind {line}" for line in text.splitlines())
        if path.name == "MINE_graph_labels.txt":
            text = "\n".join(f"empty\n{line}" for line in text.splitlines())
        path.write_text("\n" + text + "\n\n")
    small = ("--arch", "GC8-HP-FC8", "--epochs", 1, "--quiet", "--out", "run")
    err = run_main("train", files.parent, *small).err
    assert err == "haarpool: 240 of 480 graphs of MINE have no nodes and are left out\n"
    run_main("predict", "run", files.parent, "--out", "new.csv")
    header, *rows = Path("new.csv").read_text().splitlines()
    assert header == "graph,prediction,p(kind 0),p(kind 1)"
    assert [row.split(",")[0] for row in rows] == [str(2 * g + 1) for g in range(240)]


def test_labels_missing(files):
    (files / "MINE_graph_labels.txt").unlink()
    assert "labels of the graphs of MINE" in error_of("train", files.parent)
    Path("m.csv").write_text("smiles,y\nCC,\nCCC,\nCO,\n")
    assert "label" in error_of("train", "m.csv", "--target", "y")
    assert "label" in error_of("train", "m.csv")


def test_one_class_only(files):
    (files / "MINE_graph_labels.txt").write_text("1\n" * 240)
    assert "at least two classes" in error_of("train", files.parent)


def test_fewer_graphs_than_folds():
    assert "at least 500 graphs" in error_of("train", "rings", "--split", "kfold:500")


def test_nan_features(files):
    size = len((files / "MINE_node_labels.txt").read_text().splitlines())
    lines = ["0.5"] * size
    lines[99] = "nan"
    (files / "MINE_node_attributes.txt").write_text("\n".join(lines) + "\n")
    err = error_of("train", files.parent, "--features", "attributes")
    assert "line 100" in err or "graph 5" in err
    graphs = [Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=i % 2)
              for i in range(20)]  # fmt: skip
    graphs[7].x[1] = float("inf")
    torch.save(graphs, "graphs.pt")
    assert "graph 7" in error_of("train", "graphs.pt")


def test_lists_of_data():
    edge = torch.tensor([[0, 1], [1, 0]])

    def error(classes=2, **fields):
        fields = {"edge_index": edge, "num_nodes": 2} | fields
        torch.save([Data(**fields, y=i % classes) for i in range(30)], "g.pt")
        return error_of("train", "g.pt")

    assert "x of shape (2, 1)" in error(x="text")
    assert "x of shape (2, 1)" in error(x=torch.ones(2, 1, 1))
    assert "out of memory" in error(num_nodes=10**12)
    assert "pass --task classification, or regression" in error(classes=30)


def test_tables_whose_task_is_not_clear():
    Path("m.csv").write_text("smiles;y\n" + "".join(f"C;{i},5\n" for i in range(30)))
    assert "--task classification" in error_of("train", "m.csv", "--target", "y")
    Path("m.csv").write_text("smiles,y\n" + "".join(f"C,{i}\n" for i in range(30)))
    assert "or regression" in error_of("train", "m.csv", "--target", "y")


def test_csv_files():
    Path("binary.csv").write_bytes(bytes(range(256)) * 10)
    assert "binary.csv" in error_of("train", "binary.csv", "--target", "y")
    Path("none.csv").write_text("smiles,y\nxx,1\nyy,0\n")
    assert "SMILES" in error_of("train", "none.csv", "--target", "y")
    Path("some.csv").write_text("smiles,y\nCC,1\nyy,0\nCO,0\n")
    assert "line 3" in error_of("train", "some.csv", "--target", "y", "--strict")
    assert "'z'" in error_of("train", "some.csv", "--target", "z")
    assert "smiles" in error_of("train", "some.csv", "--target", "y", "--smiles", "mol")
    Path("empty.csv").write_text("")
    assert "empty.csv" in error_of("train", "empty.csv", "--target", "y")
    assert "nowhere.csv" in error_of("train", "nowhere.csv", "--target", "y")


def test_names_that_are_too_long():
    name = "a" * 300
    for arguments in (
        ("info", name),
        ("chain", f"{name}.csv"),
        ("predict", name),
        ("report", f"./{name}"),
        ("train", "rings", "--out", name),
        ("train", "rings", "--split", f"{name}.json"),
        ("train", "--resume", name),
        ("info", "--root", name),
    ):
        err = error_of(*arguments)
        assert "expected a name of at most 255 bytes" in err
        assert f"got {len(str(arguments[-1]).removeprefix('./'))} bytes: {'a' * 40}..." in err
        assert "Errno" not in err
        assert len(err) < 200
    assert "got 5,999 bytes: aaa" in error_of("info", "/".join(["a" * 99] * 60))


def test_splits_that_are_not_there():
    for name in ("nofile.json", "folder/split"):
        err = error_of("train", "rings", "--split", name)
        assert f"got {name!r}, which is no file that exists; check the path" in err
    assert "got 'typo'; pass for example --split random" in error_of(
        "train", "rings", "--split", "typo"
    )


def test_text_that_is_named_like_a_list_of_data():
    for text in ("just text", ""):
        Path("text.pt").write_text(text)
        err = error_of("info", "text.pt")
        assert "got text.pt, which is another kind of file; write it with torch.save(" in err


def test_a_pickle_is_not_executed():
    class Evil:
        def __reduce__(self):
            return (Path.touch, (Path("executed"),))

    torch.save([Evil()], "evil.pt")
    assert "evil.pt" in error_of("train", "evil.pt")
    assert not Path("executed").exists()


SETTINGS = {
    "unknown token": (["--arch", "GC8-XP-FC8"], "»XP«"),
    "no readout": (["--arch", "GC8-FC8"], "readout"),
    "no epochs": (["--epochs", "0"], "--epochs >= 1"),
    "negative lr": (["--lr", "-1"], "--lr"),
    "lr nan": (["--lr", "nan"], "--lr"),
    "dropout": (["--dropout", "2"], "dropout in [0, 1)"),
    "seed": (["--seed", "-1"], "--seed in"),
    "no such device": (["--device", "gpu9"], "expected --device of this machine"),
    "a device that computes nothing": (["--device", "meta"], "expected --device of this machine"),
    "threads": (["--threads", "99999999999"], "--threads in 0..1024"),
    "split": (["--split", "half"], "--split random"),
    "scaffolds of no molecules": (["--split", "scaffold"], "SMILES"),
    "features": (["--features", "colours"], "features of rings out of labels"),
    "method": (["--method", "magic"], '--method "'),
    "tied": (["--tied", "a"], "--tied"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name):
    arguments, part = SETTINGS[name]
    assert part in error_of("train", "rings", *arguments)


def test_the_papers_settings_are_for_its_datasets(files):
    assert "a dataset of the paper" in error_of("train", files.parent, "--preset", "paper")


def test_resume_takes_no_other_settings(trained):
    err = error_of("train", "--resume", trained, "--epochs", 50, "--lr", 0.1)
    assert "--epochs, --lr" in err
    assert "--seed" in error_of("train", "--resume", trained, "--seed", 0)
    assert "got DATASET" in error_of("train", "NCI1", "--resume", trained)


def test_an_existing_folder_is_an_error():
    Path("taken").mkdir()
    Path("taken/file").write_text("mine")
    assert "another folder" in error_of("train", "rings", "--out", "taken")
    assert Path("taken/file").read_text() == "mine"


def test_runs_that_cannot_be_used(trained, tmp_path):
    assert "a run folder at nowhere" in error_of("predict", "nowhere", "rings")
    assert "a run folder at nowhere" in error_of("train", "--resume", "nowhere")
    Path("empty").mkdir()
    assert "config.json" in error_of("predict", "empty", "rings")
    newer = shutil.copytree(trained, tmp_path / "newer")
    config = json.loads((newer / "config.json").read_text())
    (newer / "config.json").write_text(json.dumps(config | {"format": 99}))
    assert "format 99; install a newer version of haarpool" in error_of("predict", newer, "rings")
    assert "format 99" in error_of("train", "--resume", newer)
    broken = shutil.copytree(trained, tmp_path / "broken")
    weights = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[:-10])
    assert "an undamaged model.safetensors" in error_of("predict", broken, "rings")
    (broken / "config.json").write_text('{"format": 2')
    assert "an undamaged config.json" in error_of("predict", broken, "rings")
    classes = config["data"] | {"classes": ["a", "b", "c"]}
    (broken / "config.json").write_text(json.dumps(config | {"data": classes}))
    (broken / "model.safetensors").write_bytes(weights)
    assert "3 names for 2 outputs" in error_of("predict", broken, "rings")
    (broken / "config.json").write_text('{"format": 2}')
    (broken / "model.safetensors").write_bytes(weights)
    assert "an undamaged config.json" in error_of("predict", broken, "rings")


def test_checkpoints_that_cannot_be_used(trained, tmp_path):
    broken = shutil.copytree(trained, tmp_path / "broken")
    shutil.copy(broken / "model.safetensors", broken / "checkpoint.safetensors")
    assert "an undamaged checkpoint.safetensors" in error_of("train", "--resume", broken)
    (broken / "checkpoint.safetensors").write_bytes(b"")
    assert "an undamaged checkpoint.safetensors" in error_of("train", "--resume", broken)
    (broken / "checkpoint.safetensors").unlink()
    (broken / "result.json").unlink()
    (broken / "metrics.jsonl").write_bytes(b"{}\n\xff\n")
    assert "an undamaged" in error_of("train", "--resume", broken)
    (broken / "split.json").unlink()
    assert "an undamaged split.json" in error_of("train", "--resume", broken)


def test_one_way_edges(files):
    edges = (files / "MINE_A.txt").read_text().splitlines()
    (files / "MINE_edge_labels.txt").unlink()
    (files / "MINE_A.txt").write_text("\n".join(edges[1:]) + "\n")
    small = ("--arch", "GC8-HP-FC8", "--epochs", 1, "--quiet", "--out", "run")
    assert "--symmetrize" in error_of("train", files.parent, *small)
    run_main("train", files.parent, *small, "--symmetrize")


def test_graphs_that_do_not_fit(trained, files):
    Path("m.csv").write_text("smiles\nCC\n")
    assert "columns 'labels'" in error_of("predict", trained, "m.csv")
    labels = (files / "MINE_node_labels.txt").read_text().splitlines()
    (files / "MINE_node_labels.txt").write_text("\n".join(f"kind {label}" for label in labels))
    err = error_of("predict", trained, files.parent, "--out", "new.csv")
    assert f"kind {labels[0]} in graph 0 of MINE; use text for all labels, or numbers" in err
    assert not Path("new.csv").exists()


def test_a_full_disk_leaves_nothing_half_written(trained):
    """A limit on the size of files takes the part of a full disk."""

    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limited(kilobytes, *arguments):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, hard))
        try:
            return run_main(*arguments, code=2).err.splitlines()[-1]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    Path("new.csv").write_text("the old one")
    before = set(Path().iterdir())
    assert "File too large" in limited(1, "predict", trained, "rings", "--out", "new.csv")
    assert Path("new.csv").read_text() == "the old one"
    assert set(Path().iterdir()) - before <= {Path("cache")}
    small = ("--arch", "2GC256-HP-FC256", "--epochs", 2, "--quiet")
    limited(100, "train", "rings", *small, "--out", "run")
    left = {path.name for path in Path("run").iterdir()}
    assert left <= {"config.json", "split.json", "metrics.jsonl"}
    run_main("train", "--resume", "run", "--quiet")  # with room again it goes on
    assert Path("run/report.html").exists()
