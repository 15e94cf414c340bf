"""AC power flow of a real grid: voltages at every bus from the loads, as signals on one graph.

python examples/power_grid.py grid.npz --case case118 --scenarios 500
haarpool train grid.npz

pandapower solves each scenario (pip install "haarpool[power]"): independent loads, and generators
that share the difference.
"""

import argparse
from collections.abc import Callable

import numpy as np
import pandapower
import pandapower.networks
from scipy import sparse


def admittances(net: pandapower.pandapowerNet) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges (2, E) between buses, and the absolute admittances, after a power flow."""
    number = net._pd2ppc_lookups["bus"][net.bus.index.to_numpy()]  # bus -> row of the admittances
    matrix = sparse.coo_array(abs(net._ppc["internal"]["Ybus"]))
    bus = np.full(matrix.shape[0], -1)
    bus[number] = np.arange(len(number))
    edges = np.stack([bus[matrix.row], bus[matrix.col]])
    between = (edges[0] != edges[1]) & (edges >= 0).all(0) & (matrix.data > 0)
    return edges[:, between], matrix.data[between]


def sums(net: pandapower.pandapowerNet, table: str, values: np.ndarray) -> np.ndarray:
    """Return (N,) sums of the values of loads or generators at each bus."""
    position = {bus: i for i, bus in enumerate(net.bus.index)}
    at = [position[bus] for bus in net[table].bus]
    return np.bincount(at, values, minlength=len(net.bus))


def solve(net: pandapower.pandapowerNet, init: str) -> np.ndarray:
    """Return (N, 2) angles in degrees, less their mean, and voltage magnitudes."""
    pandapower.runpp(net, distributed_slack=True, init=init, calculate_voltage_angles=True)
    angle = net.res_bus.va_degree.to_numpy()
    return np.stack([angle - angle.mean(), net.res_bus.vm_pu.to_numpy()], 1)


def solved(case: str) -> pandapower.pandapowerNet:
    """Return a case whose generators share the difference in proportion to what they produce."""
    net = getattr(pandapower.networks, case)()
    net.gen["slack_weight"] = net.gen.p_mw.clip(lower=0)
    net.ext_grid["slack_weight"] = 1e-3
    solve(net, "auto")
    return net


def independent(rng: np.random.Generator, spread: float, loads: int) -> np.ndarray:
    """Draw (loads,) factors, each one for itself."""
    return 1 + rng.uniform(-spread, spread, loads)


def fixed_features(net: pandapower.pandapowerNet, weights: np.ndarray) -> np.ndarray:
    """Return (N, 3) mean load, share of the generation, log of the summed admittances (N,)."""
    generation = sums(net, "gen", net.gen.slack_weight.to_numpy())
    mean = sums(net, "load", net.load.p_mw.to_numpy())
    return np.stack([mean, generation / generation.sum(), np.log(weights + 1e-9)], 1)


def scenarios(
    case: str,
    number: int,
    spread: float,
    seed: int,
    factors: Callable[[np.random.Generator, float, int], np.ndarray] = independent,
) -> dict[str, np.ndarray]:
    """Solve scenarios of a case whose loads differ by up to `spread`, a share of each load."""
    net, rng = solved(case), np.random.default_rng(seed)
    edges, weights = admittances(net)
    load, reactive = net.load.p_mw.to_numpy().copy(), net.load.q_mvar.to_numpy().copy()
    mean = sums(net, "load", load)
    fixed = fixed_features(net, np.bincount(edges[0], weights, minlength=len(net.bus)))
    x, y = [], []
    while len(x) < number:
        factor = factors(rng, spread, len(load))
        net.load["p_mw"], net.load["q_mvar"] = load * factor, reactive * factor
        try:
            y.append(solve(net, "results"))
        except pandapower.LoadflowNotConverged:
            print(f"scenario {len(x)} has no solution; another one takes its place", flush=True)
            net.load["p_mw"], net.load["q_mvar"] = load, reactive
            solve(net, "auto")
            continue
        x.append(np.column_stack([sums(net, "load", load * factor) - mean, fixed]))
        if len(x) % 50 == 0:
            print(f"{len(x)} of {number} scenarios", flush=True)
    targets = np.array(y)
    targets[:, :, 1] -= targets[:, :, 1].mean(0)  # how a magnitude differs from its mean
    return {
        "edge_index": edges,
        "edge_weight": weights,
        "x": np.array(x, np.float32),
        "y": targets.astype(np.float32),
        "target_names": np.array(["angle", "magnitude"]),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="AC power flow of a grid, as an .npz file")
    parser.add_argument("out")
    parser.add_argument("--case", default="case118", help="a network of pandapower")
    parser.add_argument("--scenarios", type=int, default=500)
    parser.add_argument("--spread", type=float, default=0.2, help="largest change of a load")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    np.savez_compressed(
        arguments.out,
        **scenarios(arguments.case, arguments.scenarios, arguments.spread, arguments.seed),
    )
