"""Tables, figures and the page, from stored results alone."""

import csv
import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from plunit.ensemble import ACTIVATIONS
from plunit.lab import pictures as drawing
from plunit.lab import report
from plunit.lab.claims import CLAIMS, STATEMENTS, VERDICTS, answers, judge
from plunit.lab.pictures import save

SEEDS = 6
NAMES = ("sine", "parametric", "surface", "reach", "depth", "inverse")


@pytest.fixture(scope="module")
def small(quick_lab):
    """A plan of several experiments and a variant, in the order of the report."""
    parts = quick_lab(*NAMES, seeds=SEEDS)
    for name in ("parametric", "surface"):  # drawn in half the time
        parts[name] = dataclasses.replace(parts[name], activations=("relu", "plu"))
    varied = dataclasses.replace(parts["sine"], changes={"lr": 0.5}, activations=("relu", "plu"))
    return {"sine": parts.pop("sine"), "sine+lr=0.5": varied, **parts}


@pytest.fixture(scope="module")
def results(tmp_path_factory, small, compute):
    return compute(tmp_path_factory.mktemp("cells"), small)


@pytest.fixture(scope="module")
def pictures():
    """All figures of the report."""
    return []


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small, results, pictures):
    folder = tmp_path_factory.mktemp("runs")
    report.write_report(folder, small, results, lambda drawn: pictures.extend(drawn) or drawn)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "report.html").read_text())


@pytest.fixture(scope="module")
def judged(small, results):
    experiments = {name: small[name].experiment() for name in results}
    return judge(experiments, results)


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
    assert len(judged) > 30
    assert [one.claim.said for one in judged if one.claim.said not in page.words] == []
    ends = [(one.estimate.low, one.estimate.high) for one in judged if not np.isnan(one.estimate.low)]
    intervals = [f"{drawing.number(low)} to {drawing.number(high)}" for low, high in ends]
    assert [text for text in intervals if text not in page.words] == []
    assert [one.said for one in judged if one.said not in page.words] == []
    assert sum(name.startswith("claim-") for name in page.ids) == len(judged)


def test_the_paper_s_statements_and_ours_are_told_apart(page, judged):
    shown = answers(judged)
    anchors = [name.removeprefix("statement-") for name in page.ids if name.startswith("statement-")]
    assert anchors == [one.key for one in shown]
    assert {one.claim.statement for one in judged if one.experiment == "sine+lr=0.5"} == {""}
    with_paper = [one for answer in shown for one in answer.claims]
    assert {id(one) for one in with_paper} == {id(one) for one in judged if one.claim.statement}


def test_the_opening_is_computed(small, results, judged, page):
    experiments = {name: small[name].experiment() for name in results}
    first, ratios, *_ = report.opening(experiments, results, answers(judged))
    columns = [results["sine"][name]["final_loss"] for name in ("relu", "plu")]
    assert f"{drawing.number(np.median(columns[0] / columns[1]))} (" in ratios
    assert ratios in page.words
    assert page.words.index(first) < page.words.index("What the paper says, and our verdict")


def test_every_figure_is_saved_twice_and_has_a_text_for_those_who_do_not_see_it(page, folder):
    png, svg = (sorted((folder / "figures").glob(f"*.{kind}")) for kind in ("png", "svg"))
    assert [path.stem for path in png] == [path.stem for path in svg]
    assert {path.read_bytes()[:8] for path in png} == {b"\x89PNG\r\n\x1a\n"}
    assert all("<svg" in text and "prefers-color-scheme:dark" in text for text in map(Path.read_text, svg))
    assert len(page.alts) == len(svg) > 20
    assert min(map(len, page.alts)) > 30


def test_rounded_paths_leave_numbers_in_texts_alone(folder, results):
    text = (folder / "figures" / "sine-fits.svg").read_text()
    best = results["sine"]["plu"]["final_loss"].min()
    assert f"loss {best:.2g}" in text


def test_nothing_in_a_figure_is_cut_off(folder, pictures):
    edges = {}
    for picture in pictures:
        box, page = picture.figure.get_tightbbox(), picture.figure.bbox_inches
        edges[picture.name] = min(box.x0, box.y0, page.x1 - box.x1, page.y1 - box.y1)
    assert {name: edge for name, edge in edges.items() if edge < -0.01} == {}
    assert {"sine-knots", "surface-polygons", "inverse"} <= edges.keys()


def test_the_same_results_give_the_same_bytes(tmp_path, small, results, judged, folder):
    experiments = {name: small[name].experiment() for name in results}
    report.write_tables(tmp_path, experiments, results, judged, {})
    with drawing.settings():
        for name in ("surface", "reach"):
            for picture in experiments[name].figures(results[name]):
                save(picture, tmp_path / "figures")
    names = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")]
    assert len(names) > 12
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
    known = {(claim.statement, claim.setting, claim.said) for claim in CLAIMS}
    usual = [row for row in claims if "+" not in row["experiment"]]
    assert {(row["statement"], row["setting"], row["sentence"]) for row in usual} <= known
    assert all(bool(row["setting"]) == (bool(row["statement"]) and row["primary"] == "False") for row in claims)
    sources = [STATEMENTS[row["statement"]].section if row["statement"] else "ours" for row in claims]
    assert [row["source"] for row in claims] == sources
    assert "seconds" not in rows[0]


def test_the_pandas_example_runs_and_prints_medians(folder, results, capsys):
    pytest.importorskip("pandas")
    text = (Path(__file__).parents[2] / "docs/lab.md").read_text()
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "read_csv" in code]
    exec(example.replace("runs/", f"{folder}/"), {})
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:]] == ["parametric", "sine", "surface"]
    median = round(float(np.median(results["sine"]["relu"]["final_loss"])), 4)
    assert str(median) in printed


def test_colours_differ_and_are_of_activations():
    assert drawing.COLOURS.keys() <= ACTIVATIONS.keys()
    assert len(set(drawing.COLOURS.values())) == len(drawing.COLOURS)


@pytest.mark.parametrize(("losses", "middle"), [([3, 1, 2], 2), ([4, np.nan, 2, 3], 3), ([5], 0)])
def test_the_median_member_is_the_lower_one_of_two(losses, middle):
    assert drawing.median_member({"final_loss": np.array(losses, dtype=float)}) == middle


def test_a_diverged_seed_is_the_worst_in_a_band_and_in_a_distribution():
    values = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, np.nan, np.nan], [1.0, 2.0, np.nan, np.nan, np.nan]])
    axes = Figure().subplots()
    drawing.draw_band(axes, [0, 1, 2], values, "plu")
    assert axes.lines[0].get_ydata().tolist() == [3, 3, np.inf]
    runs = {"plu": {"final_loss": values[1, 1:]}}
    picture = drawing.draw_distribution("x", "X", runs, {"final_loss": "final loss"})
    assert np.count_nonzero(np.isinf(picture.figure.axes[0].lines[0].get_xdata())) == 2
    assert picture.caption.endswith("Best seeds: PLU 2.")
