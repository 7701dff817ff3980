"""The page's files: small, self-contained, and one module for the notebook."""

import re
from collections import Counter
from pathlib import Path

import plunit.play

PAGE = Path(plunit.play.__file__).parent / "page"
FILES = sorted(PAGE.iterdir())
TEXT = {path.name: path.read_text(encoding="utf-8") for path in FILES}


def test_sizes():
    assert sum(path.stat().st_size for path in FILES) <= 150_000
    assert sum(text.count("\n") for name, text in TEXT.items() if name.endswith((".js", ".css"))) <= 1_200


def test_nothing_comes_from_elsewhere():
    found = [url for text in TEXT.values() for url in re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]+[^\s\"']*", text)]
    assert set(found) <= {"http://www.w3.org/2000/svg"}


def test_markup_has_no_inline_style_script_or_id():
    assert re.findall(r"\s(?:style|on\w+|id)=|<style|<script(?! type=\"module\" src)", TEXT["index.html"]) == []


def test_no_code_from_text():
    scripts = "".join(text for name, text in TEXT.items() if name.endswith(".js"))
    assert re.findall(r"\beval\(|new Function|document\.write|insertAdjacentHTML|outerHTML", scripts) == []
    assert re.findall(r"innerHTML = (.*);", scripts) == ['model.get("markup")']


def test_modules_can_be_put_together():
    parts = [text for name, text in TEXT.items() if name.endswith(".js") and name != "boot.js"]
    lines = [line for text in parts for line in text.splitlines()]
    found = [re.match(r"(?:export )?(?:async )?(?:const|let|function|class) (\w+)", line) for line in lines]
    counts = Counter(match[1] for match in found if match)
    assert [name for name, count in counts.items() if count > 1] == []
    imports = [line for line in lines if line.startswith("import")]
    assert [line for line in imports if not re.fullmatch(r'import \{.*\} from "\./\w+\.js";', line)] == []
