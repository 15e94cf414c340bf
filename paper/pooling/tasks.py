"""The tasks of the study. A task is data; `paper.pooling.data` reads or makes its dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from haarpool.errors import HaarPoolError
from paper.pooling.methods import ALL, FIVE, SUMS


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyTask:
    """A task of the study.

    Attributes:
        name: Name of the dataset, and of its file of lines.
        title: What is predicted, for readers.
        text: Where it comes from and how it is split.
        settings: Settings of all networks. The number of epochs is that of all methods.
        methods: Names of the networks.
        shortcuts: Names of what needs no graph network.
        reference: The method that others are compared with.
        dataset: Name of a dataset of the library; by default one of the study is made.
        seeds: Number of seeds.
        large: Test graphs with more nodes are scored apart, and do not count in the main score;
            0 for none.
        levels: Levels of the networks that have some; `None` for those of the largest graph.
        parts: Scores beside the main one, with their titles in the page.
        of_nodes: Whether each node has a label; else each graph has one.
    """

    name: str
    title: str
    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = FIVE
    shortcuts: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    of_nodes: bool = True
    reference: str = "haarunet"
    dataset: str = ""
    seeds: int = 5
    large: int = 0
    levels: int | None = None


_POWER = (
    "Loads vary by 20 % around their means, independently; all generators share the slack. 600 "
    "scenarios train, 75 validate, 75 test, in five random splits. "
)
_TARGETS = {"angle": "angle", "magnitude": "magnitude"}
_UNNAMED = {"y0": "angle", "y1": "magnitude"}
_OUTAGES = (
    "One or two of the lines of `case2869pegase` that carry most are out of service in each "
    "scenario, and loads vary by 10 %; those of the test part are in service in all of the "
    "training part."
)
TASKS = {
    task.name: task
    for task in (
        StudyTask(
            name="huangpu",
            title="Eccentricity of road junctions",
            text="The decile of the eccentricity of each junction within 16 hops, on the roads of "
            "Huangpu, Shanghai (City-Networks; © OpenStreetMap contributors). 10 % of the nodes "
            "train, 10 % validate, 80 % test, five random splits.",
            settings={"epochs": 600, "dropout": 0.5},
            methods=ALL,
            shortcuts=("neighbours", "trees"),
        ),
        StudyTask(
            name="power",
            title="AC power flow, 2,869 buses",
            text="Voltage angle (less its mean over the buses) and magnitude (less its mean over "
            f"the scenarios) at each bus of `case2869pegase` from the loads. {_POWER}",
            settings={"epochs": 75},
            methods=ALL,
            shortcuts=("mean", "ridge", "diffusion"),
            parts=_TARGETS,
        ),
        StudyTask(
            name="power-change",
            title="AC power flow, changes from the mean",
            text="The same scenarios. The angle is less its mean over the scenarios too, which "
            "depends on no load and explains 98 % of the angle above.",
            settings={"epochs": 75},
            methods=ALL,
            shortcuts=("mean", "ridge", "diffusion"),
            parts=_TARGETS,
        ),
        StudyTask(
            name="power-regions",
            title="AC power flow, loads correlated by region",
            text=f"The same grid and targets as the first. Loads of a region vary together. "
            f"{_POWER}",
            settings={"epochs": 75},
            methods=ALL,
            shortcuts=("mean", "ridge", "diffusion"),
            parts=_TARGETS,
        ),
        StudyTask(
            name="power-2848",
            title="AC power flow, 2,848 buses",
            text=f"The same on `case2848rte`. {_POWER}",
            settings={"epochs": 75},
            shortcuts=("mean", "ridge", "diffusion"),
            parts=_TARGETS,
        ),
        StudyTask(
            name="outages",
            title="AC power flow with lines out of service",
            text=_OUTAGES,
            settings={"epochs": 75, "batch_size": 16},
            shortcuts=("mean",),
            parts=_UNNAMED,
        ),
        StudyTask(
            name="outages-change",
            title="Lines out of service, changes from the mean",
            text=f"{_OUTAGES} The angle is less its mean over the scenarios.",
            settings={"epochs": 75, "batch_size": 16},
            shortcuts=("mean",),
            parts=_UNNAMED,
        ),
        StudyTask(
            name="poisson",
            title="Poisson's equation on meshes",
            text="The solution at each node of a random mesh of 600 to 1,000 nodes from the "
            "right-hand side; nodes know their area. 480 meshes train, 60 validate, 60 test, and "
            "60 meshes four times larger.",
            settings={"epochs": 80, "batch_size": 16},
            methods=ALL,
            large=2_000,
            levels=7,  # those of the training part
            parts={"original sizes": "original sizes", "large": "four times larger"},
        ),
        StudyTask(
            name="traffic-blocks",
            title="Traffic speed, blocks of sensors missing",
            text="Speed at missing sensors of METR-LA from the others at the same time. Blocks of "
            "neighbours are missing; split by time, 60 / 20 / 20 %; the test part has others.",
            settings={"epochs": 30, "batch_size": 64},
            shortcuts=("sensor-mean", "sensor-regression"),
            parts={"mae": "mean absolute error, mph"},
        ),
        StudyTask(
            name="traffic-random",
            title="Traffic speed, random sensors missing",
            text="The same, with random sensors missing.",
            settings={"epochs": 30, "batch_size": 64},
            shortcuts=("sensor-mean", "sensor-regression"),
            parts={"mae": "mean absolute error, mph"},
        ),
        StudyTask(
            name="colours",
            title="Colour connectivity on roads",
            text="Are all red junctions of the road graph of Minnesota one connected piece?",
            settings={"epochs": 40, "batch_size": 16},
            of_nodes=False,
        ),
        StudyTask(
            name="triangles",
            title="Number of triangles, also in larger graphs",
            text="The published split: 30,000 graphs of up to 25 nodes train, 5,000 validate, and "
            "of 10,000 test graphs half have up to 100 nodes. Seeds differ by the weights alone.",
            settings={"epochs": 50, "batch_size": 128, "features": "auto+walks"},
            methods=SUMS,
            dataset="TRIANGLES",
            of_nodes=False,
            reference="haarsum",
            seeds=10,
            large=25,
            parts={"original sizes": "original sizes", "large": "larger graphs"},
        ),
        StudyTask(
            name="peptides",
            title="Function of peptides",
            text="Ten properties of 15,535 peptides (Peptides-func, official split). Seeds differ "
            "by the weights alone.",
            settings={"epochs": 40, "batch_size": 64},
            of_nodes=False,
        ),
    )
}


def find_task(name: str) -> StudyTask:
    """Return a task by its name."""
    if name not in TASKS:
        expected = f"a task of the study: {', '.join(TASKS)}"
        raise HaarPoolError(expected, name, "choose some of these")
    return TASKS[name]
