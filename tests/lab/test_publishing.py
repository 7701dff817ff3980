"""Tables, figures and the page, from stored results alone."""

import csv
import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from plunit.ensemble import ACTIVATIONS
from plunit.lab import publishing, story, style
from plunit.lab.claims import VERDICTS
from plunit.lab.paper import STATEMENTS
from plunit.lab.plan import Part

SEEDS = 6
NAMES = ("sine", "parametric", "surface", "map-sine", "depth", "inverse")


@pytest.fixture(scope="module")
def small(quick_lab):
    """A plan of several experiments and a variant."""
    parts = quick_lab(*NAMES, seeds=SEEDS)
    parts["sine+lr=0.5"] = dataclasses.replace(parts["sine"], changes={"lr": 0.5}, activations=("relu", "plu"))
    return parts


@pytest.fixture(scope="module")
def results(tmp_path_factory, small, compute):
    return compute(tmp_path_factory.mktemp("cells"), small)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small, results):
    folder = tmp_path_factory.mktemp("runs")
    publishing.write_report(folder, small, results)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "report.html").read_text())


@pytest.fixture(scope="module")
def judged(small, results):
    experiments = {name: small[name].experiment() for name in results}
    return story.judge(experiments, results)


class Page(HTMLParser):
    """Collects text, links, anchors and alternative texts, and checks that tags close in order."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.source, self.open, self.links, self.ids, self.alts, self.data = text, [], [], [], [], []
        self.feed(text)
        assert self.open == []
        self.words = " ".join(" ".join(self.data).split())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ("src", "href") if name in found]
        self.ids += [found["id"]] if "id" in found else []
        self.alts += [found["alt"]] if tag == "img" else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data.append(data)


def test_the_page_needs_no_other_file_and_no_script(page):
    loaded = [link for link in page.links if not link.startswith(("#", "https://arxiv.org/", "../"))]
    assert loaded
    assert [link for link in loaded if not link.startswith(("data:image/svg+xml,", "data:image/webp;"))] == []
    assert "<script" not in page.source
    assert "url(" not in re.sub(r'src="[^"]*"', "", page.source)


def test_every_link_within_the_page_has_its_anchor(page):
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_every_claim_is_there_once_with_its_numbers(page, judged):
    assert len(judged) > 40
    sentences = [claim.sentence for claim in judged]
    assert [sentence for sentence in sentences if sentence not in page.words] == []
    intervals = [f"{style.number(c.low)} to {style.number(c.high)}" for c in judged if not np.isnan(c.low)]
    assert [text for text in intervals if text not in page.words] == []
    assert sum(name.startswith("claim-") for name in page.ids) == len(judged)


def test_the_paper_s_statements_and_ours_are_told_apart(page, judged):
    shown = story.statements(judged)
    assert [STATEMENTS[one.key].sentence for one in shown] == [one.sentence for one in shown]
    anchors = [name.removeprefix("statement-") for name in page.ids if name.startswith("statement-")]
    assert anchors == [one.key for one in shown]
    assert {claim.statement for claim in judged if claim.experiment == "sine+lr=0.5"} == {""}
    with_paper = [c for one in shown for c in one.claims]
    assert {id(c) for c in with_paper} == {id(c) for c in judged if c.statement}


def test_the_opening_is_computed(small, results, judged, page):
    experiments = {name: small[name].experiment() for name in results}
    first, ratios, *_ = story.opening(experiments, results, story.statements(judged))
    measured = [one for one in story.statements(judged) if not one.theorem]
    verdicts = [one.verdict for one in measured]
    assert first.startswith(f"Of {len(measured)} statements of the paper, judged on up to {SEEDS} seeds, ")
    assert f"{verdicts.count('holds')} hold, " in first
    assert f", {verdicts.count('does not hold')} do not hold" in first
    columns = [results["sine"][name]["final_loss"] for name in ("relu", "plu")]
    assert f"{style.number(np.median(columns[0] / columns[1]))} (" in ratios
    assert first in page.words
    assert ratios in page.words
    assert page.words.index(first) < page.words.index("What the paper says, and the verdict")


def test_figures_have_texts_for_those_who_do_not_see_them(page, folder):
    assert len(page.alts) == len(list((folder / "figures").glob("*.svg"))) > 20
    assert min(map(len, page.alts)) > 30


def test_every_figure_is_saved_twice(folder):
    png, svg = ({path.stem for path in (folder / "figures").glob(f"*.{kind}")} for kind in ("png", "svg"))
    assert png == svg
    heads = {path.read_bytes()[:8] for path in (folder / "figures").glob("*.png")}
    assert heads == {b"\x89PNG\r\n\x1a\n"}
    texts = [path.read_text() for path in (folder / "figures").glob("*.svg")]
    assert [text for text in texts if "<svg" not in text or "prefers-color-scheme:dark" not in text] == []


def test_rounded_paths_leave_numbers_in_texts_alone(folder, results):
    text = (folder / "figures" / "sine-fits.svg").read_text()
    best = results["sine"]["plu"]["final_loss"].min()
    assert f"loss {best:.2g}" in text


def drawn(small, results):
    for name, runs in results.items():
        yield from small[name].experiment().figures(runs)


def test_nothing_in_a_figure_is_cut_off(small, results, judged):
    edges = {}
    with style.settings():
        for picture in (*drawn(small, results), publishing.overview.forest(judged)):
            style.place(picture.figure)
            box, page = picture.figure.get_tightbbox(), picture.figure.bbox_inches
            edges[picture.name] = min(box.x0, box.y0, page.x1 - box.x1, page.y1 - box.y1)
    assert {name: edge for name, edge in edges.items() if edge < -0.01} == {}


def test_the_same_results_give_the_same_bytes(tmp_path, small, results, folder):
    publishing.write_report(tmp_path, small, results)
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.name != "report.html"]
    assert [name for name in names if (folder / name).read_bytes() != (tmp_path / name).read_bytes()] == []


def test_tables_load_elsewhere(folder, results):
    with (folder / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    sine = [row for row in rows if row["experiment"] == "sine" and row["activation"] == "relu"]
    assert [row["seed"] for row in sine] == [str(seed) for seed in range(SEEDS)]
    assert [float(row["final_loss"]) for row in sine] == results["sine"]["relu"]["final_loss"].tolist()
    assert {row["experiment"] for row in rows} == set(results)
    with np.load(folder / "histories.npz") as histories:
        np.testing.assert_array_equal(histories["surface.plu"], results["surface"]["plu"]["history"])
    with (folder / "claims.csv").open() as file:
        claims = list(csv.DictReader(file))
    assert {row["verdict"] for row in claims} <= set(VERDICTS)
    assert {row["primary"] for row in claims} == {"True", "False"}
    decisive = [row["statement"] for row in claims if row["primary"] == "True"]
    assert len(decisive) == len(set(decisive)) == len({row["statement"] for row in claims} - {""})
    assert all(bool(row["setting"]) == (bool(row["statement"]) and row["primary"] == "False") for row in claims)
    sources = [STATEMENTS[row["statement"]].section if row["statement"] else "ours" for row in claims]
    assert [row["source"] for row in claims] == sources
    assert "seconds" not in rows[0]


@pytest.mark.parametrize("page", ["docs/lab.md", "docs/results.md"])
def test_the_pandas_example_runs_and_prints_medians(folder, results, page, capsys):
    pytest.importorskip("pandas")
    text = (Path(__file__).parents[2] / page).read_text()
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "read_csv" in code]
    exec(example.replace("runs/", f"{folder}/"), {})
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:]] == ["parametric", "sine", "surface"]
    median = round(float(np.median(results["sine"]["relu"]["final_loss"])), 4)
    assert str(median) in printed


def test_seconds_have_a_table_of_their_own(tmp_path):
    arrays = {"seed": np.array([0, 1]), "seconds": np.array([1.5, 2.25])}
    found = publishing._timings({"cifar10": {"plu": arrays}})
    assert found == [
        {"experiment": "cifar10", "activation": "plu", "seed": seed, "seconds": seconds}
        for seed, seconds in ((0, 1.5), (1, 2.25))
    ]


def test_other_activations_are_drawn(tmp_path, quick_lab, compute):
    plan = {"sine": Part("sine", 2, ("gelu", "identity", "elu", "silu", "hardtanh", "leaky_relu"), "numpy")}
    published = publishing.write_report(tmp_path, plan, compute(tmp_path, plan))
    assert published.lines[0].startswith("Median final losses over 2 seeds")
    assert "GELU" in published.page.read_text()


def test_colours_differ_and_are_of_activations():
    assert style.COLOURS.keys() <= ACTIVATIONS.keys()
    assert len(set(style.COLOURS.values())) == len(style.COLOURS)


def test_the_seeds_named_are_those_that_were_run(page):
    assert page.words.count(f"seeds 0 to {SEEDS - 1};") == len(NAMES) + 1
