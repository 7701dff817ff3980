"""Tables, figures and the page, from stored results alone."""

import csv
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from plunit.ensemble import ACTIVATIONS
from plunit.lab import depth, experiments, fit, plan, report, style, summary
from plunit.lab.executors import here
from plunit.lab.run import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small):
    folder = tmp_path_factory.mktemp("runs")
    with here() as executor:
        run(folder, plan.cells(small), executor, lambda cell: None)
    return folder


@pytest.fixture(scope="module")
def results(folder, small):
    return plan.collect(folder, small, pytest.fail)


@pytest.fixture(scope="module")
def built(folder, small, results):
    """The page, its claims and the names of its figures, made with training forbidden."""
    drawn = []

    def watch(pictures):
        drawn.extend(picture.name for picture in pictures)
        return pictures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "compute", lambda cell: pytest.fail("a report must not train"))
        return *report.build(folder, small, results, watch), drawn


class Page(HTMLParser):
    """Collects text and links, and checks that tags close in order."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_is_whole_and_needs_no_other_file(folder, small, built):
    path, claims, drawn = built
    text = path.read_text()
    page = Page(text)
    words = " ".join(" ".join(page.words).split())
    assert path == folder / "report.html"
    assert len(page.links) == len(drawn) > 15
    assert all(link.startswith("data:image/png;base64,") for link in page.links)
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text
    assert claims
    for claim in claims:
        assert claim.sentence in words
        assert np.isnan(claim.low) or f"{report.number(claim.low)} to {report.number(claim.high)}" in words
    for name in small:
        assert f"plunit run {name} --seeds 3" in words
        assert experiments.MODULES[name].TITLES[name] in words


def test_every_figure_is_saved_twice(folder, built):
    for name in built[2]:
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "figures" / f"{name}.svg").read_text()
    assert len(set(built[2])) == len(built[2])


def test_nothing_in_a_figure_is_cut_off(results):
    with style.settings():
        for package in experiments.packages(results.names()):
            for picture in package.figures(results):
                style.place(picture.figure)
                drawn, page = picture.figure.get_tightbbox(), picture.figure.bbox_inches
                edges = (drawn.x0, drawn.y0, page.x1 - drawn.x1, page.y1 - drawn.y1)
                assert min(edges) >= -0.01, (picture.name, edges)


def test_drawing_again_gives_the_same_bytes(tmp_path, results):
    for folder in (tmp_path / "first", tmp_path / "second"):
        summary.write_summary(folder, results)
        with style.settings():
            for picture in depth.figures(results):
                style.save(picture, folder)
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()


@pytest.mark.usefixtures("built")
def test_tables_load_elsewhere(folder, small, results):
    with (folder / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    sine = [row for row in rows if row["experiment"] == "sine" and row["activation"] == "relu"]
    assert [row["seed"] for row in sine] == ["0", "1", "2"]
    assert [float(row["final_loss"]) for row in sine] == results["sine", "relu"]["final_loss"].tolist()
    assert {row["experiment"] for row in rows} == set(small)
    with np.load(folder / "histories.npz") as histories:
        np.testing.assert_array_equal(histories["surface.plu"], results["surface", "plu"]["history"])
    with (folder / "claims.csv").open() as file:
        assert {row["verdict"] for row in csv.DictReader(file)} <= set(report.VERDICTS)


def test_a_run_of_other_activations_is_drawn(tmp_path, small):
    part = {"sine": plan.Part(2, ("gelu", "identity", "elu", "silu", "hardtanh", "leaky_relu"), small["sine"].engine)}
    with here() as executor:
        run(tmp_path, plan.cells(part), executor, lambda cell: None)
    path, claims = report.build(tmp_path, part, plan.collect(tmp_path, part, pytest.fail))
    assert claims == []
    assert "GELU" in path.read_text()


def test_colours_differ_and_cover_every_activation():
    assert style.COLOURS.keys() == ACTIVATIONS.keys()
    assert len(set(style.COLOURS.values())) == len(style.COLOURS)


def test_the_fitted_curves_shown_are_the_median_and_the_best_seed_s(results):
    with style.settings():
        picture = next(p for p in fit.figures(results) if p.name == "sine-fits")
    titles = [axes.get_title() for axes in picture.figure.axes]
    losses = results["sine", "tanh"]["final_loss"]
    median, best = np.argsort(losses)[1], np.argmin(losses)
    assert re.fullmatch(rf"tanh, median seed \({median}\)\nloss .*", titles[0])
    assert re.fullmatch(rf"tanh, best seed \({best}\)\nloss .*", titles[3])


def test_the_seeds_named_are_those_that_were_run(tmp_path):
    part = {"inverse": plan.Part(64, ("relu",), "eager")}  # of which five are run
    with here() as executor:
        run(tmp_path, plan.cells(part), executor, lambda cell: None)
    path, _ = report.build(tmp_path, part, plan.collect(tmp_path, part, pytest.fail))
    assert "seeds 0 to 4; ReLU" in path.read_text()
