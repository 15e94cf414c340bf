"""QM7: 7,165 small molecules with their atomization energies (Rupp et al., 2012)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from haarpool.datasets.readers.registry import Reader, register

if TYPE_CHECKING:
    from haarpool.datasets.graphs import Graphs

FILE = "qm7.mat"
URL = f"http://quantum-machine.org/data/{FILE}"
SHA256 = "fd6c26c1086887310518e6a6da778253bc5d3ceb8166007a679a740fff9ee6ea"


@register
class QM7(Reader):
    """The published file, under any name."""

    suffixes = (".mat",)
    names = ("qm7",)
    content = FILE
    tasks = ("regression",)

    def read(self, source: Path, task: str | None = None) -> Graphs:
        """Read all molecules as complete graphs."""
        from haarpool.datasets.readers.qm7.molecules import read_qm7

        return read_qm7(source, task)

    def find_in(self, folder: Path, name: str) -> Path | None:
        """Return the published file, if it is there."""
        return folder / FILE if (folder / FILE).is_file() else None

    def url(self, name: str) -> str:
        """Return the address of the file."""
        return URL

    def check_download(self, file: Path) -> None:
        """Compare the hash of the file."""
        from hashlib import sha256

        if sha256(file.read_bytes()).hexdigest() != SHA256:
            raise OSError(f"a file that differs from the published one with sha256 {SHA256}")

    def sample(self, folder: Path) -> Path:
        """Write molecules of water, each somewhat larger than the one before."""
        import numpy as np
        from scipy.io import savemat

        water = np.array([[0, 0, 0], [1.8, 0, 0], [-0.5, 1.7, 0]])
        factor = np.linspace(1, 1.2, 16)
        arrays = {"R": factor[:, None, None] * water, "Z": [[8, 1, 1]] * 16, "T": factor * -230}
        savemat(folder / "sample.mat", arrays)
        return folder / "sample.mat"
