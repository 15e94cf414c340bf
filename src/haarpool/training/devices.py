"""The processes that train together, started by `torchrun`; a process alone is a team of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed

from haarpool._types import Ints
from haarpool.errors import HaarPoolError

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Team:
    """One process among those of a run.

    Attributes:
        rank: its number; 0 is the one that writes.
        size: how many there are.
        device: where it computes.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def leads(self) -> bool:
        """Whether it writes and speaks for all."""
        return self.rank == 0

    def share(self, graphs: Ints) -> Ints:
        """Its own part of some graphs."""
        return graphs[self.rank :: self.size]

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, the same on each of them."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def copy_buffers(self, module: torch.nn.Module) -> None:
        """Running means and the like as the leader has them."""
        if self.size > 1:
            for buffer in module.buffers():
                distributed.broadcast(buffer, 0)

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The leader does it, then the others, who find what it left in the cache."""
        if self.size > 1 and not self.leads:
            distributed.barrier()
        try:
            yield
        finally:
            if self.size > 1 and self.leads:
                distributed.barrier()


@contextmanager
def join_team(device: str = "auto") -> Iterator[Team]:
    """The team that `torchrun` made, or a team of one."""
    size, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    local = int(os.environ.get("LOCAL_RANK", 0))
    place = find_device(device, local)
    if size == 1:
        yield Team(device=place)
        return
    if place.type == "cuda":
        torch.cuda.set_device(place)
    distributed.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Team(rank, size, place)
    finally:
        distributed.destroy_process_group()


def find_device(name: str = "auto", local: int = 0) -> torch.device:
    """The device of a name; "auto" takes a GPU where there is one."""
    # What cuBLAS needs for equal results in every run; it reads this when it starts.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda", "mps", "xpu"):
            raise RuntimeError("nothing is computed there")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the second: a build of torch without CUDA
        reason = str(error).splitlines()[0][:80]
        raise HaarPoolError(
            "a device of this machine", f"{name!r} ({reason})", "take --device auto, cpu or cuda"
        ) from error
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", local % torch.cuda.device_count())
    return device


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """The same numbers in every run, which a GPU has to be asked for and takes longer over."""
    if device.type != "cuda":
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warns)
