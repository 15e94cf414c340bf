"""Every bad input: one error that names what was expected, what came, and what to do."""

import ast
import pickle
import re
import sys
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Batch, Data, HeteroData

import haarpool as hp
from haarpool.chains.workers import connected
from haarpool.errors import MissingExtraError, import_extra
from haarpool.training.config import RunConfig

GRAPH = nx.to_numpy_array(nx.path_graph(4))
CHAIN = hp.Chain.from_parents([[0, 0, 1, 1], [0, 0]])
PLAN = hp.TransformPlan.from_chains([CHAIN, CHAIN])
X = np.zeros((4, 2))
EXTREME = [(0, 1, {"weight": 1e300}), (1, 2, {"weight": 1e-300}), (2, 3, {"weight": 1.0})]
EDGE = torch.tensor([[0, 1], [1, 0]])


def changed(value, row=0, column=1):
    graph = GRAPH.copy()
    graph[row, column] = graph[column, row] = value
    return graph


def short_of_data():
    matrix = sparse.csr_array(GRAPH)
    matrix.data = matrix.data[:2]
    return matrix


def returning(value):
    def answer(adjacency, num_clusters, *, seed):
        return value

    return answer


# case: (what is done, part of expected, part of got, part of the remedy)
CASES = {
    # parents
    "no parents": (lambda: hp.Chain.from_parents([]), "parents as a list", "none", "per step"),
    "id out of range": (
        lambda: hp.Chain.from_parents([[0, 1, 4, 0]]), "0..3", "0 to 4", "np.unique",
    ),
    "negative id": (lambda: hp.Chain.from_parents([[0, -1, 1]]), "0..2", "-1 to 1", "np.unique"),
    "huge id": (lambda: hp.Chain.from_parents([[0, 10**18]]), "0..1", "10000", "np.unique"),
    "gap": (lambda: hp.Chain.from_parents([[0, 0, 2, 2]]), "gaps", "cluster 1", "np.unique"),
    "wrong length": (
        lambda: hp.Chain.from_parents([[0, 0, 1], [0, 0, 0]]), "length 2", "length 3", "one parent",
    ),
    "float ids": (lambda: hp.Chain.from_parents([[0.0, 1.0]]), "integer", "float64", "astype"),
    "bool ids": (lambda: hp.Chain.from_parents([[True, False]]), "integer", "bool", "astype"),
    "text ids": (lambda: hp.Chain.from_parents([["a", "b"]]), "integer", "<U1", "astype"),
    "two dimensions": (lambda: hp.Chain.from_parents([[[0, 1]]]), "vector", "(1, 2)", "one-dim"),
    "ragged parents": (
        lambda: hp.Chain.from_parents([[0, [1, 2]]]), "parents[0]", "list", "same length",
    ),
    "parents are no list": (lambda: hp.Chain.from_parents(None), "parents", "none", "per step"),
    "a vector for a list of vectors": (
        lambda: hp.Chain.from_parents([0, 0, 1]), "vector", "()", "list of one-dim",
    ),
    "replaced measure": (
        lambda: replace(CHAIN, measure="area"), 'measure "children"', "'area'", "choose",
    ),
    "parents past from_parents": (
        lambda: hp.Chain((np.array([0, 5]),)), "0..1", "0 to 5", "np.unique",
    ),
    "empty vector": (lambda: hp.Chain.from_parents([[]]), "vector", "(0,)", "none of them empty"),
    "other graph": (
        lambda: hp.Chain.from_parents([[0, 0]], adjacency=GRAPH), "2 nodes", "4", "clustered",
    ),
    "degree without graph": (
        lambda: hp.Chain.from_parents([[0, 0]], order="degree"), "adjacency of", "none", "index",
    ),
    "unknown order": (
        lambda: hp.Chain.from_parents([[0]], order="size"), 'order "index" or', "'size'", "choose",
    ),
    "unknown measure": (
        lambda: hp.build_chain(GRAPH, 1, measure="area"), 'measure "children"', "'area'", "choose",
    ),
    "unknown order of many": (
        lambda: hp.precompute([GRAPH], 1, order="size"), 'order "index" or', "'size'", "choose",
    ),
    "no graph": (lambda: CHAIN.adjacency(0), "knows its graph", "parents alone", "adjacency"),
    # graphs
    "NaN weight": (lambda: hp.build_chain(changed(np.nan), 1), "finite", "NaN", "remove"),
    "infinite weight": (lambda: hp.build_chain(changed(np.inf), 1), "finite", "infinity", "remove"),
    "negative weight": (lambda: hp.build_chain(changed(-2), 1), ">= 0", "-2", "absolute"),
    "asymmetric": (
        lambda: hp.build_chain(np.triu(GRAPH), 1), "symmetric", "A[0, 1] = 1", "symmetrize=True",
    ),
    "directed networkx": (
        lambda: hp.build_chain(nx.DiGraph([(0, 1)]), 1), "symmetric", "A[0, 1]", "symmetrize=True",
    ),
    "one-way PyG": (
        lambda: hp.build_chain(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2), 1),
        "symmetric", "A[0, 1]", "symmetrize=True",
    ),
    "not square": (lambda: hp.build_chain(GRAPH[:3], 1), "square", "(3, 4)", "per node"),
    "a vector": (lambda: hp.build_chain([1, 2], 1), "square", "(2,)", "per node"),
    "no nodes": (lambda: hp.build_chain(np.zeros((0, 0)), 1), "one node", "empty", "remove"),
    "no nodes in networkx": (lambda: hp.build_chain(nx.Graph(), 1), "one node", "empty", "remove"),
    "broken sparse matrix": (
        lambda: hp.build_chain(
            sparse.csr_array(([1.0], [9], [0, 1, 1, 1]), shape=(3, 3)), 1
        ),
        "valid sparse", "indices", "again",
    ),
    "complex weights": (lambda: hp.build_chain(GRAPH * 1j, 1), "real", "complex", "float"),
    "text": (lambda: hp.build_chain("MUTAG", 1), "square", "()", "networkx"),
    "PyG edge out of range": (
        lambda: hp.build_chain(Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2), 1),
        "0..1", "0 to 5", "num_nodes",
    ),
    "PyG weights of wrong shape": (
        lambda: hp.build_chain(
            Data(edge_index=torch.zeros(2, 3, dtype=int), edge_weight=torch.ones(2), num_nodes=1), 1
        ),
        "(3,)", "(2,)", "per edge",
    ),
    "PyG edges in rows": (
        lambda: hp.build_chain(Data(edge_index=torch.zeros(3, 2, dtype=int), num_nodes=3), 1),
        "(2, number of edges)", "(3, 2)", "transpose",
    ),
    "PyG float edges": (
        lambda: hp.build_chain(Data(edge_index=torch.zeros(2, 1), num_nodes=3), 1),
        "whole numbers", "float32", "column per edge",
    ),
    "PyG complex weights": (
        lambda: hp.build_chain(
            Data(edge_index=EDGE, edge_weight=torch.ones(2, dtype=torch.cfloat), num_nodes=2), 1
        ),
        "real numbers", "complex64", "float",
    ),
    "PyG batch": (
        lambda: hp.build_chain(Batch.from_data_list([Data(edge_index=EDGE, num_nodes=2)] * 2), 1),
        "one graph", "a batch of 2", "to_data_list",
    ),
    "PyG adj_t": (
        lambda: hp.build_chain(Data(adj_t=torch.eye(2), num_nodes=2), 1),
        "edge_index", "adj_t", "ToSparseTensor",
    ),
    "PyG HeteroData": (lambda: hp.build_chain(HeteroData(), 1), "one type", "HeteroData", "homog"),
    "networkx weights as text": (
        lambda: hp.build_chain(nx.Graph([(0, 1, {"weight": "heavy"})]), 1),
        "number", "heavy", "float",
    ),
    "ragged rows": (lambda: hp.build_chain([[0, 1], [1]], 1), "array of", "list", "same length"),
    "torch sparse": (
        lambda: hp.build_chain(torch.eye(2).to_sparse(), 1), "array of", "Tensor", "numpy array",
    ),
    "one-way edge beside heavy ones": (
        lambda: hp.as_adjacency([[0, 1, 0], [0, 0, 1e12], [0, 1e12, 0]]),
        "symmetric", "A[0, 1] = 1 but A[1, 0] = 0", "symmetrize=True",
    ),
    "extreme weights": (
        lambda: hp.build_chain(nx.Graph(EXTREME), 1, top=None),
        "orders of magnitude", "1e-300 to 1e+300", "logarithm",
    ),
    # build_chain
    "ratio 0": (lambda: hp.build_chain(GRAPH, 1, ratio=0), "(0, 1)", "0", "ratio=0.5"),
    "ratio 1": (lambda: hp.build_chain(GRAPH, 1, ratio=1.0), "(0, 1)", "1.0", "ratio=0.5"),
    "ratio NaN": (lambda: hp.build_chain(GRAPH, 1, ratio=np.nan), "(0, 1)", "nan", "ratio=0.5"),
    "ratio as text": (lambda: hp.build_chain(GRAPH, 1, ratio="half"), "(0, 1)", "half", "0.5"),
    "no levels": (lambda: hp.build_chain(GRAPH, 0), "num_levels in 1..", "0", "leave it out"),
    "levels as float": (lambda: hp.build_chain(GRAPH, 2.5), "num_levels", "2.5", "leave it out"),
    "top 2": (lambda: hp.build_chain(GRAPH, 1, top=2), "top 1", "2", "ratio"),
    "unknown method": (
        lambda: hp.build_chain(GRAPH, 1, method="magic"), '"spectral"', "'magic'", "`register`",
    ),
    "unknown method lists all": (
        lambda: hp.build_chain(GRAPH, 1, method="metsi"),
        '", "'.join(sorted(hp.clusterings())[:-1]), "'metsi'", 'did you mean method="metis"?',
    ),
    "option of another method": (
        lambda: hp.build_chain(GRAPH, 1, method="metis", options={"xi": 1}),
        "options for method 'metis' (recursive)", "xi=1", "spelling",
    ),
    "seed negative": (lambda: hp.build_chain(GRAPH, 1, seed=-1), "seed in 0..", "-1", "seed=0"),
    "seed as float": (lambda: hp.build_chain(GRAPH, 1, seed=0.5), "seed in 0..", "0.5", "seed=0"),
    "seed too large": (lambda: hp.build_chain(GRAPH, 1, seed=2**31), "seed in", "2147", "seed=0"),
    "sizes grow": (lambda: hp.build_chain(GRAPH, sizes=[2, 3]), "never grow", "[2, 3]", "[16, 4"),
    "size zero": (lambda: hp.build_chain(GRAPH, sizes=[2, 0]), "sizes >= 1", "[2, 0]", "[16, 4"),
    "size as float": (lambda: hp.build_chain(GRAPH, sizes=[2.5]), "sizes >= 1", "2.5", "[16, 4"),
    "no sizes": (lambda: hp.build_chain(GRAPH, sizes=[]), "one per level", "[]", "[16, 4"),
    "sizes as text": (lambda: hp.build_chain(GRAPH, sizes="half"), '"paper"', "'half'", "[16, 4"),
    "sizes as number": (lambda: hp.build_chain(GRAPH, sizes=3), "one per level", "3", "[16, 4"),
    "sizes for other levels": (
        lambda: hp.build_chain(GRAPH, 3, sizes=[2, 1]), "3 values", "2", "as many",
    ),
    "ratios for other levels": (
        lambda: hp.build_chain(GRAPH, 3, ratio=[0.5] * 2), "3 values", "2", "as many",
    ),
    "no ratios": (lambda: hp.build_chain(GRAPH, ratio=[]), "one per level", "[]", "ratio=0.5"),
    "one ratio of 2": (lambda: hp.build_chain(GRAPH, ratio=[0.5, 2]), "(0, 1)", "2", "ratio=0.5"),
    "features of other rows": (
        lambda: hp.build_chain(GRAPH, 1, method="kmeans", features=X[:3]),
        "(4, d)", "(3, 2)", "as many rows",
    ),
    "features as a vector": (
        lambda: hp.build_chain(GRAPH, 1, method="kmeans", features=X[:, 0]),
        "(4, d)", "(4,)", "as many rows",
    ),
    "features as text": (
        lambda: hp.build_chain(GRAPH, 1, method="kmeans", features=[["a"]] * 4),
        "real numbers", "<U1", "as many rows",
    ),
    "NaN features": (
        lambda: hp.build_chain(GRAPH, 1, method="kmeans", features=X * np.nan),
        "finite", "NaN", "columns",
    ),
    "features nobody looks at": (
        lambda: hp.build_chain(GRAPH, 1, features=X), "reads features", "'spectral'", "kmeans",
    ),
    "resolution": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method="leiden", options={"resolution": 0}),
        "resolution of options in (0, inf)", "0", 'options={"resolution": 1.0}',
    ),
    "clusters of wrong length": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning([0, 1])),
        "4 cluster ids", "(2,)", "np.zeros",
    ),
    "clusters as text": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning(list("abcd"))),
        "whole number per node, from method 'answer'", "", "np.zeros",
    ),
    "clusters that are NaN": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning([0, 1, np.nan, 1])),
        "4 cluster ids", "not whole numbers", "np.zeros",
    ),
    "clusters that are infinite": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning([np.inf] * 4)),
        "4 cluster ids", "not whole numbers", "np.zeros",
    ),
    "clusters too large for a number": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning([2**70] * 4)),
        "4 cluster ids", "object", "np.zeros",
    ),
    "complex clusters": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning([1j] * 4)),
        "4 cluster ids", "complex", "np.zeros",
    ),
    "an option that is refused": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method="dbscan", options={"eps": -1}),
        "options valid for method 'dbscan'", "{'eps': -1}", "values",
    ),
    "an option of the wrong kind": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method="kmeans", options={"n_init": "many"}),
        "n_init of options >= 1", "many", 'options={"n_init": 10}',
    ),
    "no function": (lambda: hp.register("zz")(3), "a function", "3", "above a function"),
    "too many levels": (lambda: hp.build_chain(GRAPH, 10**9), "1..1000", "1000000000", "leave"),
    "no jobs": (lambda: hp.precompute([GRAPH], 1, n_jobs=0), "n_jobs >= 1", "0", "-1 for all"),
    "half a job": (lambda: hp.precompute([GRAPH], 1, n_jobs=0.5), "n_jobs", "0.5", "-1 for all"),
    "features of too many graphs": (
        lambda: hp.precompute([GRAPH], 1, method="kmeans", features=[X, X], cache=False),
        "features of 1 graphs", "2", "one array per graph",
    ),
    "a sparse vector": (
        lambda: hp.build_chain(sparse.csr_array([1.0, 2.0]), 1), "square", "2", "per node",
    ),
    "sparse matrix without its weights": (
        lambda: hp.build_chain(short_of_data(), 1), "valid sparse", "", "again",
    ),
    "no clusters": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning(None)),
        "4 cluster ids", "()", "np.zeros",
    ),
    "ragged clusters": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=returning([[0], [1, 2], 3, 4])),
        "4 cluster ids", "list", "np.zeros",
    ),
    "a method that takes too little": (
        lambda: hp.build_chain(GRAPH, 1, top=None, method=lambda adjacency: [0] * 4),
        "adjacency, num_clusters, *, seed", "lambda", "parameter",
    ),
    "an option that is missing": (
        lambda: hp.build_chain(GRAPH, 1, method=lambda a, k, seed, width: a),
        "options with 'width'", "none", 'options={"width": ...}',
    ),
    "a method that is a list": (
        lambda: hp.build_chain(GRAPH, 1, method=["metis"]), 'method "', "['metis']", "choose",
    ),
    "a method that is a number": (
        lambda: hp.build_chain(GRAPH, 1, method=3), 'method "', "3", "choose one",
    ),
    "a name that is taken": (
        lambda: hp.register("metis")(returning(None)), "an unused name", "'metis'", "another name",
    ),
    "unknown keyword": (
        lambda: RunConfig(chain={"ratios": 0.5}), "parameters of a chain", "ratios", "spell",
    ),
    # signals
    "rows": (lambda: hp.adjoint(CHAIN, X[:3]), "4 rows", "3", "check level"),
    "rows of compress": (lambda: hp.compress(CHAIN, X, 1), "2 rows", "4", "check level"),
    "rows of expand": (lambda: hp.expand(CHAIN, X, 0), "2 rows", "4", "check level"),
    "rows of a batch": (lambda: hp.adjoint(PLAN, X), "8 rows", "4", "same graph"),
    "level too high": (lambda: hp.adjoint(CHAIN, X, 3), "0..2", "3", "count from 0"),
    "level negative": (lambda: hp.adjoint(CHAIN, X, -1), "0..2", "-1", "count from 0"),
    "level as float": (lambda: hp.adjoint(CHAIN, X, 1.0), "0..2", "1.0", "count from 0"),
    "compress at the top": (
        lambda: hp.compress(CHAIN, np.zeros(1), 2), "0..1", "2", "a level above it",
    ),
    "expand at the top": (
        lambda: hp.expand(CHAIN, np.zeros(1), 2), "0..1", "2", "a level above it",
    ),
    "basis of a plan": (lambda: hp.haar_basis(PLAN), "a Chain", "ChainTensors", "build_chain"),
    "compressive basis of a plan": (
        lambda: hp.compressive_basis(PLAN), "a Chain", "ChainTensors", "build_chain",
    ),
    "locality of a plan": (lambda: hp.locality(PLAN), "a Chain", "ChainTensors", "build_chain"),
    "sparsity of a plan": (lambda: hp.sparsity(PLAN), "a Chain", "ChainTensors", "build_chain"),
    "algorithm1 of a plan": (
        lambda: hp.algorithm1(PLAN, X), "a Chain", "ChainTensors", "build_chain",
    ),
    "quality of a plan": (
        lambda: hp.step_quality(PLAN, 0), "a Chain", "ChainTensors", "build_chain",
    ),
    "basis of a graph": (lambda: hp.haar_basis(GRAPH), "a Chain", "ndarray", "build_chain"),
    "basis level": (lambda: hp.haar_basis(CHAIN, 3), "0..2", "3", "count from 0"),
    "compressive basis at the top": (
        lambda: hp.compressive_basis(CHAIN, 2), "0..1", "2", "a level above it",
    ),
    "adjacency level": (lambda: CHAIN.adjacency(7), "0..2", "7", "count from 0"),
    "integers": (lambda: hp.adjoint(CHAIN, X.astype(int)), "floating", "int64", ".astype(float)"),
    "bool tensor": (lambda: hp.adjoint(CHAIN, torch.ones(4) > 0), "floating", "bool", "float32"),
    "long double": (
        lambda: hp.adjoint(CHAIN, X.astype(np.longdouble)), "torch supports", "float", "float64",
    ),
    "a list": (lambda: hp.adjoint(CHAIN, [1] * 4), "numpy array", "list", "np.asarray(x, float)"),
    "a scalar": (lambda: hp.adjoint(CHAIN, np.ones(())), "(N,)", "scalar", "row"),
    "no chain": (lambda: hp.adjoint(GRAPH, X), "a Chain", "ndarray", "build_chain"),
    "other device": (
        lambda: hp.adjoint(PLAN, torch.zeros(8, device="meta")), "on cpu", "on meta", "plan.to",
    ),
    "different depths": (
        lambda: hp.TransformPlan.from_chains([CHAIN, hp.Chain.from_parents([[0]])]),
        "same number of levels", "[1, 2]", "num_levels",
    ),
    "no chains": (lambda: hp.TransformPlan.from_chains([]), "one chain", "none", "list"),
    "sparse signal": (
        lambda: hp.adjoint(CHAIN, torch.eye(4).to_sparse()), "dense", "sparse_coo", "to_dense",
    ),
    "rows of algorithm1": (lambda: hp.algorithm1(CHAIN, np.ones(8)), "(4,)", "(8,)", "check level"),
    "complex algorithm1": (lambda: hp.algorithm1(CHAIN, 1j * X), "real", "complex", "check level"),
    "no chain in the plan": (
        lambda: hp.TransformPlan.from_chains([CHAIN, "chain"]), "only chains", "str", "list",
    ),
    # coefficients
    "parts": (lambda: hp.join(CHAIN, [X[:1], X[:1]]), "[1, 1, 2]", "[1, 1]", "split"),
    "columns of parts": (
        lambda: hp.join(CHAIN, [X[:1], X[:1, :1], X[:2]]), "parts", "columns", "split",
    ),
    "keep as bool": (lambda: hp.threshold(CHAIN, X, True), "keep >= 0", "True", "keep=0.1"),
    "keep as text": (lambda: hp.threshold(CHAIN, X, "all"), "keep in (0, 1]", "all", "keep=0.1"),
    "value as text": (lambda: hp.threshold(CHAIN, X, value="1"), "value in [0", "'1'", "magnitude"),
    "no parts": (lambda: hp.join(CHAIN, []), "parts", "none", "list"),
    "keep and value": (lambda: hp.threshold(CHAIN, X, 2, value=1), "either", "both", "number"),
    "neither": (lambda: hp.threshold(CHAIN, X), "either", "none", "number"),
    "keep negative": (lambda: hp.threshold(CHAIN, X, -1), "keep >= 0", "-1", "keep=0.1"),
    "keep above one": (lambda: hp.threshold(CHAIN, X, 1.5), "keep in (0, 1]", "1.5", "keep=0.1"),
    "value negative": (lambda: hp.threshold(CHAIN, X, value=-1), "value in [0", "-1", "magnitude"),
    "mode": (lambda: hp.threshold(CHAIN, X, 1, mode="mild"), "soft", "'mild'", "choose"),
    "dense basis": (
        lambda: hp.haar_basis(hp.Chain.from_parents([np.zeros(100_000, int)])),
        "100,000,000 non-zeros", "5,000,149,999", "adjoint, compress",
    ),
    "dense compressive basis": (
        lambda: hp.compressive_basis(CHAIN, max_nonzeros=3), "3 non-zeros", "8", "adjoint",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    action, expected, got, remedy = CASES[name]
    with pytest.raises(hp.HaarPoolError) as caught:
        action()
    error = caught.value
    assert expected in error.expected
    assert got in error.got
    assert remedy in error.remedy
    assert str(error) == f"expected {error.expected}, got {error.got}; {error.remedy}"
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_of_a_users_own_method_is_not_hidden():
    def broken(adjacency, num_clusters, *, seed):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        hp.build_chain(GRAPH, 1, top=None, method=broken)
    assert not isinstance(caught.value, hp.HaarPoolError)


def test_pyg_data_without_nodes():
    with (
        pytest.warns(UserWarning, match="num_nodes"),  # PyG's own
        pytest.raises(hp.HaarPoolError, match=r"number of nodes.*set data.num_nodes"),
    ):
        hp.build_chain(Data(), 1)


@pytest.mark.parametrize(
    ("method", "module"),
    [
        ("metis", "pymetis"),
        ("louvain", "sknetwork"),
        ("leiden", "graspologic_native"),
    ],
)
def test_a_missing_extra_says_how_to_get_it(monkeypatch, method, module):
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"'{module}'.*pip install .haarpool\[cluster\]"):
        hp.build_chain(GRAPH, 1, top=None, method=method)


def test_a_missing_extra_is_an_import_error_and_survives_pickling():
    with pytest.raises(ImportError, match=r"'no_such_package'.*haarpool\[chem\]") as caught:
        import_extra("no_such_package.part", "chem")
    assert isinstance(caught.value, hp.HaarPoolError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is MissingExtraError
    assert copy.args == caught.value.args
    assert str(copy) == str(caught.value)
    assert copy.remedy == 'run pip install "haarpool[chem]"'


@pytest.mark.parametrize(("backend", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_cluster_extra(monkeypatch, backend, module):
    monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(MissingExtraError, match=rf"pip install .haarpool\[{backend}\]"),
        connected(backend, "tcp://127.0.0.1:1"),
    ):
        pass


def test_every_parameter_in_a_text_has_its_value():
    """A text such as "pass {ratio}" without `ratio=...` beside it would show its braces."""
    for path in sorted(Path(hp.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("Error"):
                continue
            texts = [
                one.value
                for arg in call.args
                for one in ast.walk(arg)
                if isinstance(one, ast.Constant)
            ]
            mentioned = set(re.findall(r"\{(\w+)\}", " ".join(map(str, texts))))
            given = {keyword.arg for keyword in call.keywords}
            assert None in given or mentioned <= given, f"{path}:{call.lineno}"
