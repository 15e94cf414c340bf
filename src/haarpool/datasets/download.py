"""Download of a file; it appears only when it is complete."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
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
    """Download the file of a dataset to the folder `folder / name`.

    `check` raises an OSError if the file is damaged.
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
            " ".join(str(error).split()) or "no answer",
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
    answer: Future[HTTPResponse] = Future()

    def ask() -> None:
        try:
            answer.set_result(urlopen(url, timeout=SILENCE))
        except Exception as error:
            if isinstance(error, HTTPError):
                error.close()
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    return answer.result(TIMEOUT)
