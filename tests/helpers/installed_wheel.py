"""Run by `make wheel` in an environment that holds the wheel and its dependencies, nothing more."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Batch, Data

import haarpool as hp
from haarpool.chains.workers import connected
from haarpool.data import AddHaarChain
from haarpool.nn import build_model

assert "site-packages" in hp.__file__, f"not the installed package: {hp.__file__}"
assert not any(map(find_spec, ("rdkit", "grakel", "shtab"))), "an extra is here"

# No network: neither here nor in other processes.
NO_NETWORK = """
import socket
connect = socket.socket.connect
def refuse(self, address):
    if self.family != getattr(socket, "AF_UNIX", None):
        raise OSError(f"the network was asked for {address}")
    return connect(self, address)
socket.socket.connect = refuse
"""
exec(NO_NETWORK)
Path("offline").mkdir(exist_ok=True)
Path("offline/sitecustomize.py").write_text(NO_NETWORK)
os.environ |= {"HAARPOOL_DATA": "", "PYTHONPATH": str(Path("offline").resolve())}
refused = "import socket; socket.create_connection(('127.0.0.1', 9))"
answer = subprocess.run([sys.executable, "-c", refused], capture_output=True, text=True).stderr
assert "the network was asked for" in answer, answer

ring = np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1)
chain = hp.build_chain(ring, num_levels=2)
x = torch.randn(8, 3)
torch.testing.assert_close(hp.forward_transform(chain, hp.adjoint(chain, x)), x)
for name in hp.__all__:
    getattr(hp, name)
graph = Data(x=x, edge_index=torch.from_numpy(np.stack(ring.nonzero())))
batch = Batch.from_data_list([AddHaarChain(num_levels=2)(graph)] * 2)
model = build_model("GC8-HP-GIN8-HP-FC8", 3, 2)
assert model(batch).shape == (2, 2)
Path("molecules.csv").write_text("smiles,y\nCC,0\nCO,1\n")
for action, extra in (
    (lambda: hp.build_chain(ring, 1, top=None, method="leiden"), "haarpool[cluster]"),
    (lambda: connected("dask", "tcp://127.0.0.1:1").__enter__(), "haarpool[dask]"),
    (lambda: hp.load_dataset("molecules.csv", targets=["y"]), "haarpool[chem]"),
):
    refusal = ""
    try:
        action()
    except hp.HaarPoolError as error:
        refusal = str(error)
    assert extra in refusal, f"the way to {extra}"
assert list(hp.precompute([ring] * 2, 2, n_jobs=2, cache=False)) == [chain] * 2
command = Path(sys.executable).with_name("haarpool")
listed = subprocess.run([command, "methods"], capture_output=True, text=True, check=True).stdout
assert "matching" in listed
small = ["--epochs", "2", "--out", "run"]  # digits need no network
shutil.rmtree("run", ignore_errors=True)
subprocess.run([command, "train", "--arch", "GC8-HP-FC8", *small], check=True)
assert "digits" in Path("run/report.html").read_text(encoding="utf-8")
shutil.rmtree("compared", ignore_errors=True)
methods = ["--method", "GC8-HP-FC8", "--method", "GC8-SUM-FC8", "--repeats", "1", "--epochs", "1"]
subprocess.run([command, "compare", "digits", *methods, "--out", "compared"], check=True)
assert "GC8-SUM-FC8" in Path("compared/README.md").read_text(encoding="utf-8")
refused = subprocess.run([command, "completion", "bash"], capture_output=True, text=True)
assert "haarpool[completion]" in refused.stderr, refused.stderr
print(f"haarpool {hp.__version__} works from its wheel: {chain}")
