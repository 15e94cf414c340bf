"""Datasets from the network, by PyTorch Geometric's own means, whole or not at all."""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from haarpool.errors import HaarPoolError

TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets"  # HAARPOOL_TU_URL names a mirror
QM7_URL = "http://quantum-machine.org/data/qm7.mat"
QM7_SHA256 = "fd6c26c1086887310518e6a6da778253bc5d3ceb8166007a679a740fff9ee6ea"
PATIENCE = 5.0  # seconds for a server to answer


def download_tu(name: str, folder: Path) -> Path:
    """`folder/NAME/raw` with the files of a TU dataset, downloaded unless it is there."""
    url = os.environ.get("HAARPOOL_TU_URL") or TU_URL

    def fetch(into: Path) -> None:
        from torch_geometric.datasets import TUDataset

        # Only the download: the constructor would go on and write processed files.
        dataset = TUDataset.__new__(TUDataset)
        dataset.root, dataset.name, dataset.cleaned, dataset.url = (
            str(into.parent),
            name,
            False,
            url,
        )
        dataset.download()

    return _whole(folder / name, f"{url}/{name}.zip", fetch) / "raw"


def download_qm7(folder: Path) -> Path:
    """`folder/QM7/qm7.mat`, downloaded unless it is there."""

    def fetch(into: Path) -> None:
        from torch_geometric.data import download_url

        file = Path(download_url(QM7_URL, str(into), filename="qm7.mat"))
        if sha256(file.read_bytes()).hexdigest() != QM7_SHA256:
            raise OSError(f"another file than the published one, whose sha256 is {QM7_SHA256}")

    return _whole(folder / "QM7", QM7_URL, fetch) / "qm7.mat"


def _whole(target: Path, url: str, fetch: Callable[[Path], None]) -> Path:
    """Fill a folder beside `target` and move it there in one step."""
    if target.is_dir():
        return target
    _reach(url, target.name)
    partial = target.parent / f".{uuid.uuid4().hex}"
    try:
        (partial / target.name).mkdir(parents=True)
        fetch(partial / target.name)
        os.replace(partial / target.name, target)
    except Exception as error:  # whatever the network, the server and the disk can do
        if not target.is_dir():  # else another process was quicker
            raise _failed(url, target.name, str(error)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _reach(url: str, name: str) -> None:
    """Ask the server whether it has the file, for a few seconds at most.

    Looking up a host without a network can take minutes and cannot be stopped; a daemon thread is
    left behind.
    """
    answer = ["no answer"]

    def ask() -> None:
        try:
            urlopen(Request(url, method="HEAD"), timeout=PATIENCE).close()
            answer[0] = ""
        except HTTPError as error:
            with error:  # some servers do not know the question, but have the file
                answer[0] = "" if error.code in (405, 501) else f"{error}"
        except (OSError, ValueError) as error:
            answer[0] = f"{error}"

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if answer[0]:
        raise _failed(url, name, answer[0])


def _failed(url: str, name: str, reason: str) -> HaarPoolError:
    return HaarPoolError(
        f"{name} here or at {url}",
        " ".join(reason.split()),
        f"fetch it elsewhere, then pass --root DIR or set HAARPOOL_DATA to the folder with {name}/",
    )
