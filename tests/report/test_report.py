"""The report of a run, made from the files in its folder."""

import json
import os
import re
import shutil
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import haarpool as hp
from haarpool.report import RunRecord, render_report, write_report
from haarpool.report.pictures import _draw_lines, choose_wavelets, draw
from haarpool.training.run_folder import FORMAT
from helpers.commands import run_process
from helpers.errors import error_with
from helpers.records import record, report_of, score, write_run

NASTY = '<script>alert("x")</script> & $x^'


# ---------------------------------------------------------------------- the page


class Page(HTMLParser):
    """What a test asks of a page: tags with their attributes, and its text."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(path.read_text("utf-8"))
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    def values(self, *names):
        return [value for _, attrs in self.tags for n, value in attrs.items() if n in names]

    def labels(self):
        return [attrs["aria-label"] for tag, attrs in self.tags if tag == "svg"]


@pytest.fixture(scope="session")
def molecule():
    """Two rings of six that share an edge, with a tail: 19 nodes."""
    graph = nx.disjoint_union(nx.cycle_graph(10), nx.path_graph(9))
    graph.add_edges_from([(0, 5), (3, 10), (12, 16)])
    return hp.build_chain(graph, num_levels=3)


CASES = {
    "classes": lambda: record(),
    "ten classes": lambda: record(classes=10, repeats=10, epochs=500),
    "many classes": lambda: record(classes=25, repeats=2),
    "long names": lambda: record(
        classes=3, changes={"classes": ["a long name of a class", "x" * 80, NASTY], "name": NASTY}
    ),
    "values": lambda: record("regression", targets=3),
    "targets": lambda: record("multilabel", targets=4),
    "members": lambda: record(members=3),
    "one epoch": lambda: record(repeats=1, epochs=1),
}


QUICK = ("classes", "values", "targets", "members")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES],
)
def page(request, tmp_path_factory, molecule):
    folder = tmp_path_factory.mktemp("run")
    return report_of(folder, replace(CASES[request.param](), chain=molecule))


def test_the_page_needs_no_network_and_no_script(page):
    found = Page(page)
    assert not {"script", "link", "iframe", "img"} & {tag for tag, _ in found.tags}
    for link in found.values("src", "href", "xlink:href"):
        assert link.startswith(("#", "data:image/png;base64,"))
    style = page.read_text("utf-8")
    assert "@import" not in style
    assert set(re.findall(r"url\((.)", style)) <= {"#"}


def test_ids_are_unique_and_references_exist(page):
    found = Page(page)
    ids = found.values("id")
    assert len(ids) == len(set(ids))
    used = {link[1:] for link in found.values("href", "xlink:href") if link.startswith("#")}
    used |= set(re.findall(r"url\(#([^)]*)\)", page.read_text("utf-8")))
    assert used
    assert used <= set(ids)


def test_the_page_is_small_and_every_picture_has_a_label(page):
    assert page.stat().st_size < 1_500_000
    words = set(re.findall(r"#333333|fill: #\w+", page.read_text("utf-8")))
    labels = Page(page).labels()
    assert len(labels) >= 12
    assert all(labels)
    assert not {"#333333", "fill: #ffffff"} & words  # ink and paper are the page's


def test_the_page_shows_command_network_and_data(page):
    found = Page(page)
    assert "haarpool train MUTAG --repeats" in found.text
    for words in ("GC60-HP-FC60-FC180-FC60", "HaarPooling", "12,345 trained weights", "graph 17"):
        assert words in found.text
    assert "nodes per graph mean: 17.93, least: 10, most: 28" in found.text
    assert {"Haar vector 1", "basis of level 2", "level 3: 1 node"} <= set(found.labels())


def test_scores_have_a_spread_and_the_number_of_repeats(tmp_path):
    run = record(repeats=3)
    for part, values in (("test", [0.8, 0.9, 0.85]), ("validation", [0.91, 0.93, 0.92])):
        run.result["scores"]["accuracy"][part] = score(values)
    found = Page(report_of(tmp_path, run))
    assert "85.0 ± 4.1 % accuracy on the test graphs" in found.text
    assert "over 3 repeats" in found.text
    assert "accuracy 85.0 ± 4.1 % 92.00 ± 0.82 % 3" in found.text
    assert "3 150 19 19 " in found.text
    assert "92 % 85 %" in found.text  # the third repeat
    assert "single repeat" not in found.text


def test_one_repeat_has_no_spread_and_a_hint(tmp_path):
    run = record(repeats=1)
    run.result["scores"]["accuracy"]["test"] = score([0.8])
    found = Page(report_of(tmp_path, run))
    assert "80 % accuracy on the test graphs" in found.text
    assert "the score of a single repeat" in found.text
    assert "±" not in found.text


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_few_test_graphs_have_a_hint(task, tmp_path):
    assert "say little" not in Page(report_of(tmp_path, record(task))).text
    few = record(task, repeats=1)
    few.result["graphs"]["test"] = [2]
    found = Page(report_of(tmp_path, few)).text
    assert "The test part has 2 graphs: its scores say little." in found


def test_a_score_that_is_not_defined_says_what_it_needs(tmp_path):
    run = record("regression", repeats=2)
    undefined = {"mean": None, "std": None, "each": [None, None]}
    run.result["scores"]["r2"] = {"test": undefined, "validation": undefined}
    text = Page(report_of(tmp_path, run)).text
    assert "in which the score is defined: R² needs graphs with different values." in text
    assert "ROC-AUC" not in text
    run = record(repeats=2)
    run.result["scores"]["f1"]["test"] = undefined
    text = Page(report_of(tmp_path / "classes", run)).text
    assert "in which the score is defined. " in text


def test_several_targets_have_a_table_and_curves(tmp_path):
    path = report_of(tmp_path, record("multilabel", targets=4))
    found = Page(path)
    assert "ROC-AUC on the test graphs" in found.text
    assert "target test ROC-AUC validation ROC-AUC repeats" in found.text
    assert "energy 0 0.2500 ± 0.0000 0.2500 ± 0.0000 3" in found.text
    assert "energy 3 – – 0" in found.text
    assert "is the mean over 3 of 4 targets; a target needs" in found.text
    assert "Multilabel classification of energy 0, energy 1, energy 2, energy 3." in found.text
    assert "4 probabilities" in found.text
    assert [label for label in found.labels() if "ROC curve" in label] == [
        f"ROC curve: energy {t}" for t in range(4)
    ]
    values = Page(report_of(tmp_path / "values", record("regression", targets=2)))
    assert (
        "energy 0 0.2500 ± 0.0000 0.2500 ± 0.0000 0.2500 ± 0.0000 0.2500 ± 0.0000 3" in values.text
    )


def test_members_of_an_ensemble(tmp_path):
    run = record(members=3)
    found = Page(report_of(tmp_path, run))
    assert "Scores of the mean prediction of 3 members" in found.text
    assert "Single members metric test validation accuracy 50.00 ± 0.00 % 50" in found.text
    epochs = ", ".join(map(str, run.result["members"]["best_epoch"][1]))
    assert f"2 150 19 19 {epochs}" in found.text
    ax = Figure().subplots()
    _draw_lines(ax, run, {"validation": "validation_loss"})
    marks = [line.get_xydata() for line in ax.lines if line.get_label() == "kept epoch"]
    assert len(marks) == 9
    value = {(e["repeat"], e["member"], e["epoch"]): e["validation_loss"] for e in run.epochs}
    best = run.result["members"]["best_epoch"]
    wanted = [[best[r][m], value[r, m, best[r][m]]] for r in range(3) for m in range(3)]
    assert sorted(np.concatenate(marks).tolist()) == sorted(wanted)
    for damage in (lambda epochs: epochs[1].pop(), lambda epochs: epochs.pop()):
        run = record(members=3)
        damage(run.result["members"]["best_epoch"])
        write_run(tmp_path, run)
        with error_with("an undamaged result.json", "one per member"):
            write_report(tmp_path)
    run = record("regression", targets=2)
    del run.result["targets"]["energy 1"]["rmse"]
    with error_with("an undamaged result.json", "'rmse'"):
        report_of(tmp_path / "values", run)


def test_names_are_escaped(tmp_path):
    path = report_of(tmp_path, CASES["long names"]())
    assert "<script" not in path.read_text("utf-8")
    assert Page(path).text.count(NASTY) >= 4  # title, heading, both sides of the table


def test_confusion_counts_all_test_parts(tmp_path):
    target, predicted = np.array([0, 0, 0, 1, 1, -1]), np.array([0, 0, 1, 1, 1, 0])
    path = tmp_path / "report.html"
    path.write_text(
        render_report(replace(record(repeats=2), target=target, prediction=predicted)), "utf-8"
    )
    found = Page(path)
    assert "class 0 2 67 % 1 33 % class 1 0 2 100 %" in found.text
    assert "5 predictions of the 2 test parts together" in found.text
    assert "an accuracy of 60 %" in found.text


def test_too_many_classes_for_a_table(tmp_path):
    found = Page(report_of(tmp_path, record(classes=60)))
    assert "60 classes are too many for a confusion matrix" in found.text


@pytest.mark.slow
def test_a_dot_per_test_graph_with_a_value(tmp_path):
    run = record("regression", repeats=2, targets=2)
    first, second = draw(run)["predictions"]
    known = np.isfinite(run.target).sum(axis=0)
    ticks = [len(re.findall("xtick_|ytick_", svg)) for svg in (first, second)]
    uses = [svg.count("<use") for svg in (first, second)]
    assert np.subtract(uses, ticks).tolist() == known.tolist()
    assert known[0] < known[1]
    no_value = replace(run, target=np.full_like(run.target, np.nan))
    assert len(draw(no_value)["predictions"]) == 2


def test_without_a_chain_its_sections_are_left_out(tmp_path):
    run = record()
    run.config["chain"] = None
    found = Page(report_of(tmp_path, run))
    assert not {"Chain", "chain", "Wavelets", "Chains"} & set(found.text.split())
    assert found.labels() == ["loss by epoch", "validation accuracy by epoch"]


def test_a_graph_too_large_to_draw(tmp_path):
    chain = hp.build_chain(nx.cycle_graph(1200), num_levels=2, method="matching")
    found = Page(report_of(tmp_path, replace(record(), chain=chain)))
    assert "1,200 nodes, too many to draw (at most 1,000)" in found.text
    assert len(found.labels()) == 2


@pytest.mark.slow
def test_a_graph_of_500_nodes_stays_small(tmp_path):
    graph = nx.random_geometric_graph(500, 0.07, seed=0)
    chain = hp.build_chain(graph, num_levels=2, method="matching")
    path = report_of(tmp_path, replace(record(), chain=chain))
    assert path.stat().st_size < 1_500_000
    assert "level 0: 500 nodes" in Page(path).labels()


def test_the_chosen_epochs_are_marked_on_the_validation_curve():
    run, ax = record(repeats=3), Figure().subplots()
    _draw_lines(ax, run, {"training": "train_loss", "validation": "validation_loss"})
    marks = [line.get_xydata() for line in ax.lines if line.get_label() == "kept epoch"]
    value = {(e["repeat"], e["epoch"]): e["validation_loss"] for e in run.epochs}
    best = run.result["best_epoch"]
    wanted = [[epoch, value[repeat, epoch]] for repeat, epoch in enumerate(best)]
    assert sorted(np.concatenate(marks).tolist()) == sorted(wanted)
    assert ax.lines[-1].get_xdata() == [best[run.result["model_of_repeat"]]] * 2


@pytest.mark.parametrize("members", [1, 2])
def test_the_last_epoch_is_not_said_to_be_chosen(tmp_path, members):
    run = record(members=members)
    assert "chosen on the validation graphs alone" in Page(report_of(tmp_path, run)).text
    run.config["training"]["monitor"] = "last"
    text = Page(report_of(tmp_path, run)).text
    assert "chosen" not in text
    assert ("the last ones." if members > 1 else "the last one.") in text


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_numbers_leave_gaps(tmp_path, missing):
    run = record()
    for entry in run.epochs:
        entry |= {"validation_score": None, "train_loss": missing, "validation_loss": missing}
    run.result["scores"]["f1"]["test"] = {"mean": missing, "std": missing, "each": [missing] * 3}
    found = Page(report_of(tmp_path, run))
    assert found.labels() == ["loss by epoch"]
    assert "No validation score was recorded" in found.text
    assert "F1 –" in found.text


def test_a_loss_over_many_magnitudes_has_a_logarithmic_axis():
    run, ax = record(), Figure().subplots()
    run.epochs[0]["train_loss"] = 1e4
    _draw_lines(ax, run, {"training": "train_loss", "validation": "validation_loss"})
    assert ax.get_yscale() == "log"


def test_chosen_wavelets_go_from_coarse_to_fine(molecule):
    assert choose_wavelets(molecule) == [0, *molecule.sizes[-1:0:-1]]
    assert choose_wavelets(hp.Chain.from_parents([[0] * 10])) == [0, 1, 6, 9]
    assert choose_wavelets(hp.Chain.from_parents([[0]])) == [0]
    deep = hp.build_chain(nx.path_graph(600), num_levels=9, method="matching")
    assert len(choose_wavelets(deep)) == 6
    assert choose_wavelets(deep)[0] == 0


@pytest.mark.slow
def test_the_page_is_the_same_every_time(tmp_path, molecule):
    first = report_of(tmp_path, replace(record(), chain=molecule)).read_bytes()
    assert report_of(tmp_path, replace(record(), chain=molecule)).read_bytes() == first


@pytest.mark.slow
def test_real_graphs(tmp_path, tu_graphs):
    chain = hp.build_chain(tu_graphs("MUTAG")[0], num_levels=1)
    path = report_of(tmp_path, replace(record(), chain=chain))
    assert "level 0: 17 nodes" in Page(path).labels()
    assert path.stat().st_size < 300_000


# ---------------------------------------------------------------------- whole or not at all


def test_a_failing_write_leaves_the_old_report_alone(tmp_path, monkeypatch):
    path = report_of(tmp_path, record())
    before = path.read_bytes()
    files = sorted(write_run(tmp_path, record(repeats=1)).iterdir())

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with error_with("a file that can be written", "no space left"):
        write_report(tmp_path)
    assert sorted(tmp_path.iterdir()) == files
    assert path.read_bytes() == before


# ---------------------------------------------------------------------- the files of a run


@pytest.mark.parametrize("name", CASES)
def test_records_are_read_from_their_files(name, tmp_path, molecule):
    run = replace(CASES[name](), chain=molecule)
    again = RunRecord.read(write_run(tmp_path, run))
    assert (again.config, again.epochs, again.result) == (run.config, run.epochs, run.result)
    assert again.chain == run.chain
    np.testing.assert_array_equal(again.target, run.target)
    np.testing.assert_array_equal(again.prediction, run.prediction)


def test_a_run_without_example_chain(tmp_path):
    found = Page(report_of(tmp_path, record()))
    assert "no example_chain.npz , so no chain is shown" in found.text
    assert found.labels() == ["loss by epoch", "validation accuracy by epoch"]


def test_nodes_are_drawn_at_their_positions(tmp_path, molecule):
    run = replace(record(), chain=molecule)
    without = Page(report_of(tmp_path / "layout", run))
    assert "features of the graph" not in without.labels()
    size = molecule.sizes[0]
    run.result["example_positions"] = [[n % 5, n // 5] for n in range(size)]
    again = RunRecord.read(write_run(tmp_path / "positions", run))
    assert again.result == run.result
    placed = Page(report_of(tmp_path / "positions", run))
    assert placed.labels() == without.labels()
    run.result["example_signal"] = [n / 2 for n in range(size)]
    signal = Page(report_of(tmp_path / "signal", run))
    assert set(signal.labels()) - set(without.labels()) == {"features of the graph"}
    assert "the larger the first of its features x" in signal.text
    run.result["example_positions"].pop()
    with error_with("positions as finite numbers", f"shape ({size - 1}, 2)"):
        report_of(tmp_path / "fewer", run)
    run.result["example_positions"][0] = ["left", 1]
    with error_with("an undamaged result.json", "'left'"):
        report_of(tmp_path / "text", run)


DAMAGED = {
    "no folder": (None, None, "a run folder at", "no folder"),
    "no config": ("config.json", None, "a run folder at", "a folder without config.json"),
    "a newer format": ("config.json", b'{"format": 99}', f"a run of format {FORMAT}", "format 99"),
    "config without data": ("config.json", b'{"format": 2}', "config.json", "KeyError: 'data'"),
    "no result": ("result.json", None, "a complete run", "finish the run with resume"),
    "half a result": ("result.json", b'{"metric": ', "an undamaged result.json", "train again"),
    "an empty result": ("result.json", b"{}", "an undamaged result.json", "'repeats'"),
    "no metrics": ("metrics.jsonl", None, "an undamaged metrics.jsonl", "no epoch"),
    "no predictions": ("test.csv", None, "an undamaged test.csv", "train again"),
    "an empty test.csv": ("test.csv", b"", "an undamaged test.csv", "train again"),
    "an unknown class": ("test.csv", b"repeat,graph\n0,1,x,class 1\n", "test.csv", "'x'"),
    "an epoch without loss": ("metrics.jsonl", b'{"repeat": 0}', "metrics.jsonl", "'epoch'"),
    "other metrics": ("metrics.jsonl", b"7", "an undamaged metrics.jsonl", "TypeError"),
    "half a row": ("test.csv", b"repeat,graph\n0,1,class 1\n", "test.csv", "train again"),
    "words for numbers": ("test.csv", b"repeat,graph\na,b,class 1,class 1\n", "test.csv", "'a'"),
    "no text": ("test.csv", b"\xff\xfe", "an undamaged test.csv", "utf-8"),
    "a damaged chain": ("example_chain.npz", b"PK", "example_chain.npz", "delete the file"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_errors(name, tmp_path):
    file, content, *parts = DAMAGED[name]
    folder = tmp_path / "run" if file is None else write_run(tmp_path, record())
    if content is not None:
        (folder / file).write_bytes(content)
    elif file is not None:
        (folder / file).unlink()
    with error_with(*parts):
        write_report(folder)
    assert not (folder / "report.html").exists()


def test_incomplete_results_are_errors(tmp_path):
    for name, change in {
        "best_epoch": lambda result: result["best_epoch"].pop(),
        "model_of_repeat": lambda result: result.update(model_of_repeat=3),
        "metric": lambda result: result.update(metric="mae"),
        "mean": lambda result: result["scores"]["f1"]["test"].pop("mean"),
        "train": lambda result: result["graphs"].pop("train"),
    }.items():
        run = record()
        change(run.result)
        write_run(tmp_path / name, run)
        with error_with("an undamaged result.json", "train again"):
            write_report(tmp_path / name)


def test_incomplete_configurations_are_errors(tmp_path):
    for section in ("model", "chain", "training", "versions", "command"):
        run = record()
        del run.config[section]
        write_run(tmp_path / section, run)
        with error_with("an undamaged config.json", section, "train again"):
            write_report(tmp_path / section)


# ---------------------------------------------------------------------- in a browser

WIDTHS, SCHEMES = (320, 360, 1280), ("light", "dark")
# A frame for each, since a window is never narrower than 500 pixels; and what is wrong
# in them: things wider than the page unless they scroll by themselves, and text cut off by its SVG.
FRAMES = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<body>FRAMES<pre></pre><script>
function outside(inner, outer) {
  return inner.left < outer.left - 1 || inner.right > outer.right + 1
      || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}
function measure(frame) {
  const page = frame.contentDocument, width = frame.contentWindow.innerWidth, wrong = [];
  page.querySelectorAll("details").forEach(element => { element.open = true; });
  for (const element of page.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    const free = !element.closest(".scroll") || element.matches(".scroll");
    if (free && !element.closest("svg g, defs") && (box.right > width + 0.5 || box.left < -0.5))
      wrong.push(element.tagName + " " + element.className + " is too wide");
    if (element.tagName == "text" && outside(box, element.closest("svg").getBoundingClientRect()))
      wrong.push(element.textContent.trim() + " is cut off");
  }
  const look = element => frame.contentWindow.getComputedStyle(element);
  return {
    width, wrong, scroll: page.documentElement.scrollWidth,
    dark: frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
    paper: look(page.body).backgroundColor, ink: look(page.body).color,
    drawn: [...new Set([...page.querySelectorAll("svg text")].map(text => look(text).fill))],
  };
}
window.onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(measure);
  document.querySelector("pre").textContent = JSON.stringify(found);
};
</script>"""


@pytest.fixture
def browse(tmp_path):
    """`browse(html)`: measures, light and dark, at all widths; and what the console said."""
    chromium = shutil.which("chromium")

    def look(html):
        source = escape(html, quote=True)
        frames = "".join(
            f'<iframe width="{width}" height="900" style="border: 0; color-scheme: {scheme}"'
            f' srcdoc="{source}"></iframe>'
            for scheme in SCHEMES
            for width in WIDTHS
        )
        path = tmp_path / "frames.html"
        path.write_text(FRAMES.replace("FRAMES", frames, 1), "utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command += ["--disable-dev-shm-usage"]
        command += ["--enable-logging=stderr", "--v=0", f"--user-data-dir={tmp_path / 'profile'}"]
        command.append(path.as_uri())
        done = run_process(*command)
        found = re.search(r"<pre>(.*?)</pre>", done.out, re.DOTALL)[1]
        console = [line for line in done.err.splitlines() if ":CONSOLE:" in line]
        return json.loads(unescape(found)), console

    return look


@pytest.mark.browser
def test_in_a_browser(browse, page):
    found, console = browse(page.read_text("utf-8"))
    assert console == []
    frames = [(frame["dark"], frame["width"]) for frame in found]
    assert frames == [(dark, width) for dark in (False, True) for width in WIDTHS]
    for frame in found:
        assert frame["wrong"] == []
        assert frame["scroll"] <= frame["width"]
        assert frame["drawn"] == [frame["ink"]]  # figures are drawn in the ink of the page
        look = {n: sum(map(int, re.findall(r"\d+", frame[n])[:3])) for n in ("paper", "ink")}
        bright, faint = ("ink", "paper") if frame["dark"] else ("paper", "ink")
        assert look[bright] > 600
        assert look[faint] < 150


@pytest.mark.browser
def test_the_browser_finds_defects(browse):
    wide = '<body><p style="width: 400px">wide</p><script>console.error("broken")</script>'
    cut = '<svg width="50" height="20"><text x="30" y="15">clipped</text></svg>'
    (_, phone, screen, *_), console = browse(f"<!doctype html>{wide}{cut}")
    assert phone["wrong"] == ["P  is too wide", "clipped is cut off"]
    assert screen["wrong"] == ["clipped is cut off"]
    assert phone["scroll"] > phone["width"]
    assert screen["scroll"] <= screen["width"]
    assert len(console) == len(WIDTHS) * len(SCHEMES)  # one in each frame
    assert "broken" in console[0]


@pytest.mark.parametrize(
    ("rule", "folds", "own"),
    [
        ("kfold:3", 3, "split and initial"),
        ("given", 3, "split and initial"),
        ("given", None, "initial"),
    ],
)
def test_what_differs_between_repeats(rule, folds, own):
    run = record(repeats=3)
    config = run.config | {"training": run.config["training"] | {"split": rule}}
    page = render_report(replace(run, config=config, result=run.result | {"folds": folds}))
    assert f"repeats, each with its own {own} weights." in page
