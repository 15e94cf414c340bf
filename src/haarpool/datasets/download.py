"""Download of datasets by PyTorch Geometric's functions; a folder appears only when complete."""

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
TIMEOUT = 5.0  # seconds for a server to answer


class DownloadError(HaarPoolError):
    """A dataset cannot be downloaded."""


def download_tu(name: str, folder: Path) -> Path:
    """Download a TU dataset, unless it was downloaded before.

    Args:
        name: Name in the TU collection.
        folder: Folder of all downloads.

    Returns:
        The folder of its raw files.
    """
    url = os.environ.get("HAARPOOL_TU_URL") or TU_URL

    def fetch(target: Path) -> None:
        from torch_geometric.datasets import TUDataset

        # Only the download: the constructor would also write processed files.
        dataset = TUDataset.__new__(TUDataset)
        dataset.root, dataset.name = str(target.parent), name
        dataset.cleaned, dataset.url = False, url
        dataset.download()

    return _complete(folder / name, f"{url}/{name}.zip", fetch) / "raw"


def download_qm7(folder: Path) -> Path:
    """Download QM7, unless it was downloaded before.

    Args:
        folder: Folder of all downloads.

    Returns:
        The file `qm7.mat`.
    """

    def fetch(target: Path) -> None:
        from torch_geometric.data import download_url

        file = Path(download_url(QM7_URL, str(target), filename="qm7.mat"))
        if sha256(file.read_bytes()).hexdigest() != QM7_SHA256:
            raise OSError(f"a file that differs from the published one with sha256 {QM7_SHA256}")

    return _complete(folder / "QM7", QM7_URL, fetch) / "qm7.mat"


def _complete(target: Path, url: str, fetch: Callable[[Path], None]) -> Path:
    """Fill a temporary folder beside `target`, then rename it in one step."""
    if target.is_dir():
        return target
    _check_server(url, target.name)
    partial = target.parent / f".{uuid.uuid4().hex}"
    try:
        (partial / target.name).mkdir(parents=True)
        fetch(partial / target.name)
        os.replace(partial / target.name, target)
    except Exception as error:  # of the network, the server or the disk
        if not target.is_dir():  # else another process was faster
            raise _failed(url, target.name, str(error)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _check_server(url: str, name: str) -> None:
    """Ask the server whether it has the file, for a few seconds at most.

    Without a network, looking up a host can take minutes and cannot be stopped. So a daemon thread
    does it.
    """
    answer = ["no answer"]

    def ask() -> None:
        try:
            urlopen(Request(url, method="HEAD"), timeout=TIMEOUT).close()
            answer[0] = ""
        except HTTPError as error:
            with error:  # some servers do not support HEAD, but have the file
                answer[0] = "" if error.code in (405, 501) else f"{error}"
        except (OSError, ValueError) as error:
            answer[0] = f"{error}"

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    if answer[0]:
        raise _failed(url, name, answer[0])


def _failed(url: str, name: str, reason: str) -> DownloadError:
    return DownloadError(
        f"{name} on this machine or at {url}",
        " ".join(reason.split()),
        f"pass root=DIR or set HAARPOOL_DATA to a folder with {name}/, or use generated graphs "
        "(dataset rings)",
    )
