"""The timing figure of the paper: one pooling layer on a minibatch of random graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.layers import (
    MODES,
    NAMES,
    OWN,
    SLOW,
    lacks_memory,
    layers,
    node_counts,
    random_minibatch,
)
from benchmarks.measure import (
    Action,
    BenchOptions,
    Times,
    captured,
    describe,
    in_new_process,
    measure,
)
from benchmarks.results import Measurement

TITLE = "one pooling layer, 50 random graphs, 10 % density, 64 features; value: TopKPooling / it"
REFERENCE = "TopKPooling"
# Lower limits of our layers on a GPU, by mode, called from Python or captured.
LIMITS = {
    "eager": dict(zip(MODES, (10.0, 8.0), strict=True)),
    "captured": dict.fromkeys(MODES, 15.0),
}
TOO_SLOW_MS = 1500.0  # a layer that takes longer is left out at larger sizes


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure all sizes; the reference runs beside each choice of layers."""
    left_out: dict[tuple[str, str], str] = {}
    names = (*options.layers, REFERENCE) if options.layers else NAMES
    for num_nodes in node_counts(options):
        made = layers(random_minibatch(num_nodes, options), names)
        for mode in MODES:
            actions = {name: layer.action(mode) for name, layer in made.items()}
            reasons = {
                name: left_out.get((name, mode)) or lacks_memory(name, num_nodes, options)
                for name in actions
            }
            running = {name: one for name, one in actions.items() if not reasons[name]}
            times = {name: Times(error=reason) for name, reason in reasons.items()}
            times |= measure(running, options, once=SLOW)
            for name in filter(options.includes, actions):
                yield _compare(name, mode, num_nodes, times[name], times[REFERENCE], options)
                if times[name].median > TOO_SLOW_MS:
                    seconds = times[name].median / 1000
                    left_out[name, mode] = f"left out: {seconds:.0f} s per call at a smaller size"
            if options.on_gpu:
                own = {name: actions[name] for name in OWN if name in actions}
                for name, replay in _captured(own, options).items():
                    yield _compare(
                        name, mode, num_nodes, replay, times[REFERENCE], options, "captured"
                    )
    if options.on_gpu and options.includes(REFERENCE):
        first = node_counts(options)[0]  # TopKPooling reads sizes back from the GPU
        times_of_reference = in_new_process(capture_reference, first, options)
        yield _compare(REFERENCE, MODES[0], first, *times_of_reference, options, "captured")


def _captured(actions: Mapping[str, Action], options: BenchOptions) -> dict[str, Times]:
    """Measure the replays of some actions."""
    try:
        return measure({name: captured(action) for name, action in actions.items()}, options)
    except Exception as error:
        return dict.fromkeys(actions, Times(error=f"cannot be captured: {describe(error)}"))


def _compare(
    name: str,
    mode: str,
    num_nodes: int,
    times: Times,
    reference: Times,
    options: BenchOptions,
    way: str = "eager",
) -> Measurement:
    return Measurement(
        f"{name}, {num_nodes} nodes, {mode}{', captured' * (way == 'captured')}",
        reference.median / times.median,
        "x as fast",
        times,
        at_least=LIMITS[way][mode] if name in OWN and options.on_gpu else None,
        case={"layer": name, "nodes": num_nodes, "mode": mode, "way": way},
        optional=name not in OWN,
    )


def capture_reference(num_nodes: int, options: BenchOptions) -> tuple[Times, Times]:
    """Return the times of TopKPooling, captured (or the error) and eager."""
    forward = {REFERENCE: layers(random_minibatch(num_nodes, options))[REFERENCE].forward}
    eager = measure(forward, options)[REFERENCE]
    return _captured(forward, options)[REFERENCE], eager
