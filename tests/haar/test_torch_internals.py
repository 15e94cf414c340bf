"""Private names of torch and Triton: each is noticed when it changes, and can be done without."""

import ast
import importlib.util
import inspect
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import haarpool as hp
from haarpool.haar import operators
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.kernels import _torch_internals as internals
from haarpool.haar.operators import analysis
from helpers.tolerances import close

PARENTS = [np.repeat([0, 1, 2], [3, 4, 2]), np.zeros(3, int)]
MANY = [hp.Chain.from_parents(PARENTS), hp.Chain.from_parents([[0, 0], [0]])]
PLAN = ChainTensors.from_chains(MANY)


@pytest.fixture
def without(monkeypatch):
    """`without("torch._C.name")` returns the file as it is where torch lacks this name.

    The operators use it; torch itself needs its names and keeps them.
    """

    def reload(*names):
        with monkeypatch.context() as missing:
            for name in names:
                missing.delattr(name)
            again = importlib.util.spec_from_file_location("without_names", internals.__file__)
            module = importlib.util.module_from_spec(again)
            again.loader.exec_module(module)
        monkeypatch.setitem(sys.modules, module.__name__, module)  # Dynamo imports it
        monkeypatch.setattr(operators, "internals", module)
        apply = module.traced_if_jvp_is_known(operators._apply)
        monkeypatch.setattr(operators, "_apply", apply)
        return module

    return reload


def apply(x):
    return analysis(PLAN, x, 0)


def signal():
    return torch.randn(11, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def results():
    """What a map gives in all modes of torch."""
    x = signal()
    leaf = x.clone().requires_grad_()
    value = apply(leaf)
    yield value.detach()
    yield torch.autograd.grad(value.square().sum(), leaf, create_graph=True)[0].detach()
    many = torch.stack([x, 2 * x])
    yield torch.autograd.grad(apply(leaf), leaf, many, is_grads_batched=True)[0]
    with torch.no_grad():
        yield apply(x)
        with forward_ad.dual_level():
            yield forward_ad.unpack_dual(apply(forward_ad.make_dual(x, 3 * x))).tangent
    yield torch.func.jvp(apply, (x,), (x,))[1]
    yield torch.func.jvp(torch.func.grad(lambda v: apply(v).pow(3).sum()), (x,), (x,))[1]
    yield torch.func.vmap(apply)(many)
    yield torch.func.vmap(torch.func.grad(lambda v: apply(v).square().sum()))(many)
    yield torch.ops.haarpool.analysis(x, *PLAN.steps(0, skip=True)[:4])


PUBLIC_WAYS = {
    "transforms": ["torch._C._are_functorch_transforms_active"],
    "dual level": ["torch.autograd.forward_ad._current_level"],
    "batched": ["torch._C._functorch.is_legacy_batchedtensor"],
    "nesting": ["torch._functorch.eager_transforms.JVP_NESTING"],
}
PUBLIC_WAYS["all"] = [name for names in PUBLIC_WAYS.values() for name in names]


@pytest.mark.parametrize("names", PUBLIC_WAYS.values(), ids=PUBLIC_WAYS)
def test_the_same_results_without(names, without):
    expected = list(results())
    without(*names)
    for result, value in zip(results(), expected, strict=True):
        assert torch.equal(result, value)


def test_the_same_results_without_a_plain_apply(monkeypatch):
    expected = list(results())
    monkeypatch.setattr(internals, "Function", object)  # which inherits no `apply`
    apply = internals.plain_apply(operators._Plain)
    assert apply == operators._Plain.apply
    monkeypatch.setattr(operators, "_plain_apply", apply)
    for result, value in zip(results(), expected, strict=True):
        assert torch.equal(result, value)


@pytest.mark.slow
def test_compiled_code_without_the_nesting_of_jvp(without):
    """Then the graph is left: in it a tangent would be lost."""
    x = signal()

    def tangent(x):
        return torch.func.jvp(apply, (x,), (x,))[1]

    def curved(x):
        return torch.func.jvp(torch.func.grad(lambda v: apply(v).pow(3).sum()), (x,), (x,))[1]

    expected = [function(x) for function in (apply, tangent, curved)]
    without(*PUBLIC_WAYS["nesting"])
    for function, value in zip((apply, tangent, curved), expected, strict=True):
        torch.compiler.reset()
        assert close(torch.compile(function, backend="aot_eager")(x), value)
        torch.compiler.reset()
        with pytest.raises(Exception, match="does not say whether forward-mode"):
            torch.compile(function, backend="aot_eager", fullgraph=True)(x)
    torch.compiler.reset()


def test_a_tensor_that_may_have_changed_without_versions():
    class Unversioned:
        """A tensor without the private counter of its changes."""

    x = torch.zeros(3)
    assert internals.version(x) == internals.version(x)
    assert internals.version(Unversioned()) != internals.version(Unversioned())


# ------------------------------------------------------------------ changes of torch


def test_transforms_are_told():
    assert not internals._transforms_active()
    seen = []
    torch.func.vmap(lambda v: seen.append(internals._transforms_active()) or v)(signal())
    assert seen == [True]


def test_dual_levels_are_counted():
    assert internals._dual_levels._current_level == -1
    with forward_ad.dual_level():
        assert internals._dual_levels._current_level == 0


def test_batched_gradients_are_told():
    seen = []
    x = signal().requires_grad_()
    y = 2 * x
    y.register_hook(lambda grad: seen.append(internals._legacy_batched(grad)))
    torch.autograd.grad(y, x, torch.stack([x, x]), retain_graph=True, is_grads_batched=True)
    torch.autograd.grad(y, x, x)
    torch.func.vmap(lambda v: seen.append(internals._legacy_batched(v)) or v)(x)
    assert seen == [True, False, False]


def test_apply_calls_the_plain_apply():
    """If torch does more than this before it, the plain one may lack it."""
    plain = torch._C._FunctionBase.__dict__["apply"]
    assert operators._plain_apply == plain.__get__(None, operators._Plain)
    if vars(torch.autograd.Function)["apply"] is plain:  # since torch 2.15
        return
    calls = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(inspect.getsource(torch.autograd.Function)))
        if isinstance(node, ast.Return) and "super().apply" in ast.unparse(node)
    ]
    assert calls == ["return super().apply(*args, **kwargs)"]


def test_changes_of_a_tensor_are_counted():
    x = torch.zeros(3)
    before = x._version
    assert internals.version(x) == before
    x.add_(1)
    assert internals.version(x) == before + 1


def test_nested_jvp_is_counted():
    """That compiled code sees it is in `test_forward_mode_in_compiled_code_is_an_error`."""
    seen = []
    x = signal()
    assert internals.is_inside_jvp() is False
    torch.func.jvp(lambda v: seen.append(internals._transforms.JVP_NESTING) or v, (x,), (x,))
    assert seen == [1]


# ------------------------------------------------------------------ the direct launch


@pytest.fixture
def launches(monkeypatch, tmp_path):
    """What Triton passes to the GPU, on a machine without one."""
    triton = pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("the interpreter does not compile")
    seen = []

    class Driver:
        utils = SimpleNamespace(
            load_binary=lambda *_: ("module", "function", 0, 0, 1024),
            unload_module=lambda module: None,
            get_device_properties=lambda device: {"max_shared_mem": 2**16},
        )

        def launcher_cls(self, *_):
            return lambda *arguments: seen.append(arguments)

        def get_current_device(self):
            return -1  # where `Tensor.get_device` says that a tensor on the CPU is

        def get_current_stream(self, device):
            return 7

        def get_current_target(self):
            return triton.backends.compiler.GPUTarget("cuda", 80, 32)

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(triton.runtime.driver, "_active", Driver())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: -1)
    monkeypatch.setattr("haarpool.haar.kernels.launch._variants", {})
    return seen


@pytest.mark.slow
def test_the_direct_launch_passes_what_triton_passes(launches, monkeypatch):
    """The first launch of a variant is the one of Triton, the second one is direct."""
    from haarpool.haar.kernels import cuda
    from haarpool.haar.kernels.launch import Launch

    call = Launch.__call__

    def call_twice(*arguments):
        call(*arguments)
        call(*arguments)

    monkeypatch.setattr(Launch, "__call__", call_twice)
    x, (tree, *_) = signal().float(), PLAN.trees
    cuda.analysis(x, PLAN.steps(0))  # with tuples
    cuda.gather_sum(x, tree[0], None, None)
    assert len(launches) == 4
    for public, direct in zip(launches[::2], launches[1::2], strict=True):
        assert public[:5] == (*public[:3], 7, "function")  # grid, stream, function
        assert len(direct) == len(public)
        assert all(map(same, direct, public))


def same(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or (not isinstance(a, torch.Tensor) and a == b) or type(a).__name__ == "LazyDict"


REFUSING = {(2, 3, 1): lambda x: None}  # takes the arguments in another form


@pytest.mark.parametrize(
    ("names", "compiled"),
    [(None, {}), (["x"], None), (["x", "OTHER"], {}), (["x", "SIZE"], REFUSING)],
)
def test_triton_launches_what_cannot_be_launched_directly(names, compiled):
    class Kernel(dict):
        arg_names = names

    calls = []
    kernel = Kernel({(2, 3): lambda *arguments, **constants: calls.append((arguments, constants))})
    constants = {"SIZE": 8, "num_warps": 4}
    internals.direct_launch(kernel, compiled, 1, constants)((2, 3), ("x",))
    assert calls == [(("x",), constants)]


# ------------------------------------------------------------------ nowhere else


PRIVATE = re.compile(r"(^|\.)_(?!_)")
OF_OBJECTS = {
    name
    for thing in (torch.Tensor, torch.nn.Module(), torch.optim.Optimizer, torch.autograd.Function)
    for name in dir(thing)
    if PRIVATE.match(name)
}


def of_torch(name):
    return name.partition(".")[0] in ("torch", "triton")


def private_names(source):
    """Return the private names of torch and Triton in source code."""
    nodes = list(ast.walk(ast.parse(source)))
    known, used = {"torch", "triton"}, set()
    for node in nodes:
        if isinstance(node, ast.Import):
            used |= {name.name for name in node.names if of_torch(name.name)}
            known |= {name.asname or "" for name in node.names if of_torch(name.name)}
        elif isinstance(node, ast.ImportFrom) and of_torch(node.module or ""):
            used |= {f"{node.module}.{name.name}" for name in node.names}
            known |= {name.asname or name.name for name in node.names}
    for node in nodes:
        match node:
            case ast.Attribute():
                name = ast.unparse(node)
                if not re.fullmatch(r"[\w.]+", name):
                    name = f"….{node.attr}"
                if name.partition(".")[0] in known or node.attr in OF_OBJECTS:
                    used.add(name)
            case ast.Constant(value=str(name)):  # an argument of getattr or import_module
                if of_torch(name) or name in OF_OBJECTS:
                    used.add(name)
            case ast.Call(func=ast.Name(id="super"), args=[base, _]):
                if ast.unparse(base).partition(".")[0] in known:  # the rest of its classes
                    used.add(f"{ast.unparse(base)}._base")
    return {name for name in used if PRIVATE.search(name)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from torch._C import name", {"torch._C.name"}),
        ("from torch import _C", {"torch._C"}),
        ("import triton.language as tl; tl.core._name()", {"tl.core._name"}),
        ("from torch.autograd import forward_ad as f; f._level", {"f._level"}),
        ("x._version, getattr(x, '_version')", {"x._version", "_version"}),
        ("import_module('torch._functorch')", {"torch._functorch"}),
        ("super(torch.nn.Module, model).apply", {"torch.nn.Module._base"}),
        ("import torch; torch.__version__, self._name, chain._name", set()),
        ("from torch_geometric import _compile", set()),
    ],
)
def test_private_names_are_found(source, expected):
    assert private_names(source) == expected


def test_nothing_else_uses_private_names():
    package = Path(hp.__file__).parent
    found = {path: private_names(path.read_text()) for path in package.rglob("*.py")}
    assert [path.name for path, names in found.items() if names] == [Path(internals.__file__).name]
