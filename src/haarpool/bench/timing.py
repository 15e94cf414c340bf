"""The timing figure of the paper: one pooling layer on a minibatch of random graphs."""

from __future__ import annotations

from collections.abc import Iterator

from haarpool.bench.layers import (
    NAMES,
    OWN,
    SLOW,
    Layer,
    lacks_memory,
    layers,
    node_counts,
    random_minibatch,
)
from haarpool.bench.measure import (
    Action,
    Settings,
    Times,
    captured,
    describe,
    in_new_process,
    measure,
)
from haarpool.bench.results import Line

TITLE = "one pooling layer, 50 random graphs, 10 % density, 64 features; value: TopKPooling / it"
REFERENCE = "TopKPooling"
EAGER_LIMITS = {"forward": 10.0, "forward + backward": 8.0}
CAPTURED_LIMIT = 15.0
TOO_SLOW_MS = 1500.0  # a layer that takes longer is left out at larger sizes


def run(settings: Settings) -> Iterator[Line]:
    """Yield the lines of all sizes; the reference runs beside each choice of layers."""
    left_out: dict[tuple[str, str], str] = {}
    names = (*settings.layers, REFERENCE) if settings.layers else NAMES
    for num_nodes in node_counts(settings):
        made = layers(random_minibatch(num_nodes, settings), names)
        for mode in EAGER_LIMITS:
            actions = _actions(made, mode)
            reasons = {
                name: left_out.get((name, mode)) or lacks_memory(name, num_nodes, settings)
                for name in actions
            }
            running = {name: one for name, one in actions.items() if not reasons[name]}
            times = {name: Times(error=reason) for name, reason in reasons.items()}
            times |= measure(running, settings, once=SLOW)
            for name in filter(settings.includes, actions):
                yield _line(name, mode, num_nodes, times[name], times[REFERENCE], settings)
                if times[name].median > TOO_SLOW_MS:
                    seconds = times[name].median / 1000
                    left_out[name, mode] = f"left out: {seconds:.0f} s per call at a smaller size"
            if settings.on_gpu:
                own = {name: actions[name] for name in OWN if name in actions}
                replays = _captured(own, settings)
                for name, replay in replays.items():
                    yield _line(
                        name, mode, num_nodes, replay, times[REFERENCE], settings, captured=True
                    )
    if settings.on_gpu and settings.includes(REFERENCE):
        yield _reference_captured(node_counts(settings)[0], settings)


def _actions(made: dict[str, Layer], mode: str) -> dict[str, Action]:
    if mode == "forward":
        return {name: layer.forward for name, layer in made.items()}
    return {name: layer.with_backward() for name, layer in made.items()}


def _captured(actions: dict[str, Action], settings: Settings) -> dict[str, Times]:
    """Measure the replays of some actions."""
    try:
        return measure({name: captured(action) for name, action in actions.items()}, settings)
    except Exception as error:
        return dict.fromkeys(actions, Times(error=describe(error)))


def _line(
    name: str,
    mode: str,
    num_nodes: int,
    times: Times,
    reference: Times,
    settings: Settings,
    *,
    captured: bool = False,
) -> Line:
    way = "captured" if captured else "eager"
    limit = CAPTURED_LIMIT if captured else EAGER_LIMITS[mode]
    limited = name in OWN and settings.on_gpu and not settings.quick
    return Line(
        "timing",
        f"{name}, {num_nodes} nodes, {mode}{', captured' * captured}",
        reference.median / times.median,
        "x as fast",
        times,
        at_least=limit if limited else None,
        case={"layer": name, "nodes": num_nodes, "mode": mode, "way": way},
        error=times.error,
        optional=name not in OWN,
    )


def _reference_captured(num_nodes: int, settings: Settings) -> Line:
    """Try to capture TopKPooling, which reads sizes back from the GPU."""
    times, reference = in_new_process(capture_reference, num_nodes, settings)
    return _line(REFERENCE, "forward", num_nodes, times, reference, settings, captured=True)


def capture_reference(num_nodes: int, settings: Settings) -> tuple[Times, Times]:
    """Return the times of TopKPooling, captured (or the error) and eager."""
    forward = layers(random_minibatch(num_nodes, settings))[REFERENCE].forward
    eager = measure({REFERENCE: forward}, settings)[REFERENCE]
    try:
        return measure({REFERENCE: captured(forward)}, settings)[REFERENCE], eager
    except Exception as error:
        return Times(error=f"cannot be captured: {describe(error)}"), eager
