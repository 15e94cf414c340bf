"""Where datasets are found: folders, earlier downloads, the network."""

import http.server
import threading
import zipfile
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from haarpool.datasets import (
    find_dataset,
    is_available,
    known_datasets,
    local_source,
    locations,
    read_graphs,
)
from haarpool.datasets.readers import qm7
from haarpool.datasets.readers.tu.names import TU_NAMES
from helpers.errors import error_with
from helpers.files import write_qm7, write_tiny_tu


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No data folder and no network, and a cache of its own."""
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HAARPOOL_TU_URL", "http://127.0.0.1:9")


@pytest.fixture
def downloaded(tmp_path):
    """MUTAG as an earlier download."""
    return write_tiny_tu(tmp_path / "cache" / "downloads" / "MUTAG", "MUTAG")


# ------------------------------------------------------------------ locations


def test_folders_are_searched_in_order(tmp_path, monkeypatch, downloaded):
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        write_tiny_tu(root / "TINY" / "raw")
    write_tiny_tu(first / "Mutagenicity", "Mutagenicity")
    write_tiny_tu(second / "MUTAG", "MUTAG")
    monkeypatch.setenv("HAARPOOL_DATA", str(second))
    assert find_dataset("TINY", first) == first / "TINY" / "raw"
    assert find_dataset("tiny") == second / "TINY" / "raw"
    assert find_dataset(first / "TINY") == first / "TINY" / "raw"
    assert find_dataset("MUTAGEN", first) == first / "Mutagenicity"
    assert find_dataset("mutag") == second / "MUTAG"
    assert find_dataset("mutag", first) == second / "MUTAG"  # both folders are searched
    monkeypatch.delenv("HAARPOOL_DATA")
    assert find_dataset("mutag", first) == downloaded


def test_a_path_is_never_used_as_a_name(tmp_path, monkeypatch):
    root = tmp_path / "root"
    write_tiny_tu(root / "MUTAG" / "raw", "MUTAG")
    write_tiny_tu(root / "NCI1", "NCI1")
    monkeypatch.setenv("HAARPOOL_DATA", str(root))
    monkeypatch.chdir(tmp_path)
    for source in ("my/MUTAG", "./MUTAG", "MUTAG/", str(tmp_path / "no" / "NCI1"), "../NCI1"):
        for base in (None, root):
            with error_with("which does not exist", "check the path"):
                find_dataset(source, base)
        assert local_source(source) is None
    (tmp_path / "MUTAG").mkdir()
    with error_with("the folder MUTAG without NAME_A.txt"):
        find_dataset("./MUTAG")
    (tmp_path / "notes.other").touch()
    for source in ("notes.other", "./notes.other"):
        with error_with("CSV file with SMILES", "the file notes.other", "check the file"):
            find_dataset(source)
    monkeypatch.chdir(root / "MUTAG")
    write_tiny_tu(tmp_path / "root", "OTHER")  # the data folder is no answer to "here"
    assert find_dataset(".").resolve() == root / "MUTAG" / "raw"
    assert find_dataset("..").resolve() == root


def test_an_empty_folder_does_not_hide_a_known_name(tmp_path, monkeypatch, downloaded):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MUTAG").mkdir()
    (tmp_path / "MUTAG" / "config.json").touch()
    (tmp_path / "triangles").touch()
    assert find_dataset("MUTAG") == downloaded
    assert find_dataset("triangles") is None
    assert local_source("MUTAG") is local_source("triangles") is None
    (tmp_path / "run").mkdir()
    with error_with("the folder run without NAME_A.txt", "check the folder"):
        find_dataset("run")
    # In a folder of datasets, an empty folder is an error.
    with error_with("MUTAG without NAME_A.txt"):
        find_dataset("MUTAG", tmp_path)
    write_tiny_tu(tmp_path / "MUTAG", "MUTAG")
    assert find_dataset("MUTAG") == Path("MUTAG")


def test_sources_that_are_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tiny_tu(tmp_path / "OWN" / "raw")
    for file in ("m.csv", "m.tsv", "m.pt", "m.mat", "m.zip", "m.other"):
        (tmp_path / file).touch()
        expected = None if file == "m.other" else tmp_path / file
        assert local_source(file) == local_source(f"./{file}") == expected
    assert local_source("OWN") == local_source(tmp_path / "OWN") == tmp_path / "OWN"
    assert local_source("NCI1") is local_source("nothing") is None
    # A dataset that is found by its name is no path.
    write_tiny_tu(tmp_path / "root" / "OWN")
    assert local_source("OWN", "root") is None
    assert local_source("./OWN", "root") == tmp_path / "OWN"
    monkeypatch.setenv("HAARPOOL_DATA", "root")
    assert local_source("OWN") is None


def test_mutag_without_network():
    with error_with(
        "MUTAG on this machine or at http://127.0.0.1:9/MUTAG.zip",
        'root="DIR" or set HAARPOOL_DATA',
        "or use the dataset digits",
    ):
        read_graphs("MUTAG")


def test_is_available(tmp_path, monkeypatch):
    monkeypatch.setattr(locations, "urlopen", None)  # any download would fail
    monkeypatch.chdir(tmp_path)
    for name in ("rings", "Triangles", "digits"):
        assert is_available(name)
    for source in ("MUTAG", "NCI1", "qm7", "no such name", "no/such/path", "molecules.csv"):
        assert not is_available(source)
    write_tiny_tu(tmp_path / "root" / "MUTAG", "MUTAG")
    assert is_available("mutag", "root")
    assert not is_available("mutag", "nowhere")
    monkeypatch.setenv("HAARPOOL_DATA", "root")
    assert is_available("mutag")
    assert is_available("root/MUTAG")
    (tmp_path / "root" / "NCI1").mkdir()
    assert not is_available("NCI1")  # an empty folder in a folder of datasets is an error
    (tmp_path / "m.csv").touch()
    assert is_available("m.csv")
    downloaded = tmp_path / "cache" / "downloads" / "QM7"
    downloaded.mkdir(parents=True)
    write_qm7(downloaded / "qm7.mat")
    assert is_available("qm7")


def test_unknown_names(tmp_path, monkeypatch):
    monkeypatch.setattr(locations, "urlopen", None)  # any download would fail
    with error_with("'PROTEIN'", "did you mean PROTEINS"):
        read_graphs("PROTEIN")
    with error_with('root="DIR" or set HAARPOOL_DATA'):
        read_graphs("some own data")
    write_tiny_tu(tmp_path / "OWN")
    with error_with("did you mean OWN"):
        read_graphs("OWNN", tmp_path)
    with error_with("zzzzz", "has OWN"):
        read_graphs("zzzzz", tmp_path)
    write_tiny_tu(tmp_path / "more" / "MINE")
    with monkeypatch.context() as both:
        both.setenv("HAARPOOL_DATA", str(tmp_path / "more"))
        with error_with("has OWN, more; ", "more has MINE"):
            read_graphs("zzzzz", tmp_path)
    with error_with("which does not exist", "check the path"):
        read_graphs("molecules.csv")
    with error_with("root as a folder that holds datasets", "nowhere", "check root"):
        read_graphs("MUTAG", tmp_path / "nowhere")
    (tmp_path / "EMPTY").mkdir()
    for source in ("EMPTY", tmp_path / "EMPTY"):
        with error_with("EMPTY without NAME_A.txt", "check the folder"):
            read_graphs(source, tmp_path)


def test_known_datasets(tmp_path, monkeypatch, downloaded):
    write_tiny_tu(tmp_path / "OWN")
    write_tiny_tu(tmp_path / "PROTEINS")
    known = known_datasets(tmp_path)
    assert known[0] == ("OWN", str(tmp_path / "OWN"))
    where = dict(known)
    assert where["PROTEINS"] == str(tmp_path / "PROTEINS")
    assert where["MUTAG"] == str(downloaded)
    assert where["triangles"] == where["rings"] == where["digits"] == "generated"
    assert where["NCI1"] == where["qm7"] == "download"
    assert len(where) == len(known)
    write_tiny_tu(tmp_path / "more" / "MINE")
    monkeypatch.setenv("HAARPOOL_DATA", str(tmp_path / "more"))
    both = dict(known_datasets(tmp_path))
    assert both["MINE"] == str(tmp_path / "more" / "MINE")
    assert both["OWN"] == where["OWN"]
    assert len({name.lower() for name in TU_NAMES}) == len(TU_NAMES) > 120


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
    source = write_tiny_tu(tmp_path / "KKI", "KKI")
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
    with error_with("OHSU on this machine or at", "404"):
        read_graphs("OHSU")
    (folder / "OHSU.zip").write_bytes(b"no zip file")
    with error_with("OHSU on this machine or at", 'root="DIR"'):
        read_graphs("OHSU")
    assert [path.name for path in downloads.iterdir()] == ["KKI"]


def test_a_server_that_never_answers(monkeypatch):
    asked = threading.Event()

    def hang(*_, **__):
        asked.set()
        release.wait(30)
        raise OSError

    release = threading.Event()
    monkeypatch.setattr(locations, "urlopen", hang)
    monkeypatch.setattr(locations, "TIMEOUT", 0.05)
    with error_with("DD on this machine or at", "no answer"):
        read_graphs("DD")
    assert asked.is_set()
    release.set()


def test_qm7_is_downloaded_and_checked(server, tmp_path, monkeypatch):
    folder, address = server
    monkeypatch.setattr(qm7, "URL", f"{address}/qm7.mat")
    write_qm7(folder / "qm7.mat")
    with error_with("qm7 on this machine or at", "differs from the published one"):
        read_graphs("qm7")
    assert list((tmp_path / "cache" / "downloads").iterdir()) == []
    digest = sha256((folder / "qm7.mat").read_bytes()).hexdigest()
    monkeypatch.setattr(qm7, "SHA256", digest)
    assert len(read_graphs("QM7")) == 2
