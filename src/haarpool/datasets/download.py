"""Download of a file; it appears only when it is complete."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from haarpool.errors import HaarPoolError

TIMEOUT = 5.0  # seconds for a server to answer
SILENCE = 60.0  # seconds for it to continue


class DownloadError(HaarPoolError):
    """A dataset cannot be downloaded."""


def download(name: str, url: str, folder: Path, check: Callable[[Path], None]) -> None:
    """Download the file of a dataset to the folder `name`.

    Args:
        name: Name of the dataset.
        url: Address of the file.
        folder: Folder of all downloads.
        check: Raises an OSError if the file is damaged.
    """
    partial = folder / f".{uuid.uuid4().hex}"
    try:
        with _open(url) as response:
            folder.mkdir(parents=True, exist_ok=True)
            with open(partial, "xb") as file:
                shutil.copyfileobj(response, file)
        check(partial)
        (folder / name).mkdir(exist_ok=True)
        partial.replace(folder / name / url.rpartition("/")[2])
    except Exception as error:  # of the network, the server or the disk
        raise DownloadError(
            f"{name} on this machine or at {url}",
            " ".join(str(error).split()),
            f"pass {{root}} or set HAARPOOL_DATA to a folder with {name}/, or use generated "
            "graphs (dataset rings)",
            root="DIR",
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _open(url: str) -> HTTPResponse:
    """Open an address, or raise an error after a few seconds.

    Without a network, looking up a host can take minutes and cannot be stopped. So a daemon thread
    does it.
    """
    answers: list[HTTPResponse | Exception] = []

    def ask() -> None:
        try:
            answers.append(urlopen(url, timeout=SILENCE))
        except Exception as error:
            if isinstance(error, HTTPError):
                error.close()
            answers.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    answer = answers[0] if answers else OSError("no answer")
    if isinstance(answer, Exception):
        raise answer
    return answer
