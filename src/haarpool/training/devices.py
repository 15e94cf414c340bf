"""The device of a run, and the processes that share a run under `torchrun`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, distributed

from haarpool._types import Ints
from haarpool.errors import HaarPoolError

CPU = torch.device("cpu")
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


@dataclass
class Captures:
    """What is known about CUDA graphs that capture training steps on a device.

    Attributes:
        failed: Whether a capture has failed. Then random numbers in earlier captures fail too, so
            none is replayed and no other one is tried.
    """

    failed: bool = False


@dataclass(frozen=True)
class ProcessGroup:
    """One process of a run; a single process is a group of size 1.

    Attributes:
        rank: Number of this process.
        size: Number of processes.
        device: Device of this process.
        captures: Shared by all trainers of the run.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU
    captures: Captures = field(default_factory=Captures, compare=False, repr=False)

    @property
    def is_main(self) -> bool:
        """True on rank 0, which writes files and prints."""
        return self.rank == 0

    def local_part(self, graphs: Ints) -> Ints:
        """Return the part of some graphs that this process works on."""
        return graphs[self.rank :: self.size]

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def broadcast_buffers(self, module: torch.nn.Module) -> None:
        """Copy the buffers of rank 0, such as running means, to all processes."""
        if self.size > 1:
            for buffer in module.buffers():
                distributed.broadcast(buffer, 0)

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Run a block on rank 0 first; the other processes then find its results in the cache."""
        if self.size > 1 and not self.is_main:
            distributed.barrier()
        try:
            yield
        finally:
            if self.size > 1 and self.is_main:
                distributed.barrier()


@contextmanager
def join_process_group(device: str = "auto") -> Iterator[ProcessGroup]:
    """Join the processes that `torchrun` started, or make a group of one process."""
    size, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    local_device = find_device(device, int(os.environ.get("LOCAL_RANK", 0)))
    if size == 1:
        yield ProcessGroup(device=local_device)
        return
    if local_device.type == "cuda":
        torch.cuda.set_device(local_device)
    distributed.init_process_group("nccl" if local_device.type == "cuda" else "gloo")
    try:
        yield ProcessGroup(rank, size, local_device)
    finally:
        distributed.destroy_process_group()


def find_device(name: str = "auto", local_rank: int = 0) -> torch.device:
    """Return a device by name; "auto" is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda", "mps", "xpu"):
            raise RuntimeError("no device to compute on")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # AssertionError: torch without CUDA
        reason = str(error).splitlines()[0][:80]
        raise HaarPoolError(
            "of this machine",
            f"{name!r} ({reason})",
            "pass {device}, cpu or cuda",
            parameter="device",
            device="auto",
        ) from error
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", local_rank % torch.cuda.device_count())
    return device


@contextmanager
def deterministic(device: torch.device, *, algorithms: bool = True) -> Iterator[None]:
    """Let every run on a GPU give the same numbers.

    Args:
        device: The device.
        algorithms: Use deterministic algorithms, which are slower. Networks whose sums have a fixed
            order do not need them.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    # cuBLAS needs this for equal results in every run, and reads it when it starts.
    is_set = CUBLAS in os.environ
    os.environ.setdefault(CUBLAS, ":4096:8")
    if algorithms:
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warns)
        if not is_set:
            del os.environ[CUBLAS]


def seed_sequence(*numbers: int, member: int = 0) -> np.random.SeedSequence:
    """Return the seeds of some numbers, other ones for each member of an ensemble.

    Those of member 0 do not depend on how many members there are.
    """
    return np.random.SeedSequence(numbers, spawn_key=(member,) if member else ())


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's random numbers inside a block; its generators are restored afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def num_threads(count: int) -> Iterator[None]:
    """Set the number of CPU threads inside a block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_name(device: torch.device) -> str:
    """Return the device with the name of the GPU."""
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return str(device)
