"""What the README and the documentation show runs as it stands."""

import re
import runpy
import textwrap
from pathlib import Path

import pytest
from file_imports import imports
from places import ROOT

from kernelrules.report.reading import _MISSING, _NO_NUMBER

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))


def fenced_blocks(language):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def test_readme_sets_up_with_two_lines():
    first = re.search(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = first[2].splitlines()
    assert first[1] == "sh"
    assert len(lines) == 2
    assert "pip install" in lines[0]
    assert lines[0].endswith("&& python -m kernelrules report")  # the main job, on the data that come with it
    assert f"$ {lines[0]}" in (ROOT / "docs" / "start.rst").read_text(encoding="utf-8")
    assert "pytest" in lines[1]


def test_guide_names_every_word_for_missing():
    page = (ROOT / "docs" / "guide" / "report.rst").read_text(encoding="utf-8")
    sentence = page[page.index("Empty cells") : page.index("- A column is **numbers**")]
    everywhere, among_numbers = sentence.split("are missing;")
    named = [set(re.findall(r"``(.*?)``", part.lower())) for part in (everywhere, among_numbers)]
    assert named == [_MISSING - {""}, _NO_NUMBER - _MISSING]


def test_readme_code_runs():
    blocks = fenced_blocks("python")
    assert blocks
    for block in blocks:
        names = {}
        exec(compile(block, "README.md", "exec"), names)
        assert abs(names["Z"] @ names["Z"].T - names["K"]).mean() < 0.05
        assert (names["K"] == names["K"].T).all()


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(path):
    for name, _ in imports(path):
        pytest.importorskip(name)
    runpy.run_path(str(path), run_name="__main__")
    assert "assert" in path.read_text(encoding="utf-8"), "an example checks what it shows"


# What there is to do with the package, and the call that does it: each has an example with a picture.
CAPABILITIES = [
    "kernels.nystroem", "kernels.random_fourier", "ridge.fit", "ridge.path", "ridge.posterior", "graph.fit", "erm.fit",
    "svm.svc", "svm.svr", "svm.one_class", "svm.tune", "svm.path", "svm.calibrate", "tree.grow", "prune.cross_validate",
    "rules.extract", "rules.simplify", "rules.induce", "rules.additive", "bounds.of_tree", "export.to_text",
    "plot.losses", "plot.criteria", "make_pipeline", "GridSearchCV",
]  # fmt: skip
BUNDLED = r"load_(digits|iris|wine|diabetes|breast_cancer)\(|datasets.(spambase|lecture_table)\("


def test_the_gallery_has_an_example_of_every_capability():
    """On real data, but for the curves of losses and criteria, which have none; with categories and missing values."""
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs/examples/gallery").glob("*.py")}
    everything = "".join(scripts.values())
    assert [call for call in CAPABILITIES if f"{call}(" not in everything] == []
    assert [name for name, text in scripts.items() if not re.search(BUNDLED, text)] == ["theory"]
    assert "dtype=object" in scripts["tree_missing"]
    assert "None" in scripts["tree_missing"]


def test_changelog_names_the_version():
    import kernelrules

    changes = ROOT / "CHANGELOG.md"
    if not changes.exists():
        pytest.skip("tests run without the changelog")
    assert f"## {kernelrules.__version__}" in changes.read_text(encoding="utf-8")


def test_links_that_lead_nowhere_are_found(tmp_path):
    broken = runpy.run_path(str(ROOT / "docs" / "check_links.py"))["broken"]
    (tmp_path / "other.html").write_text('<p id="here">', encoding="utf-8")
    links = ["other.html", "other.html#here", "#top", "https://example.org/x", "gone.html", "other.html#gone", "a.png"]
    body = '<h1 id="top"></h1>' + "".join(f'<a href="{link}"></a>' for link in links[:-1]) + f'<img src="{links[-1]}">'
    (tmp_path / "index.html").write_text(body, encoding="utf-8")
    bad, outside = broken(tmp_path)
    assert [link for _, link in bad] == links[4:]
    assert outside == ["https://example.org/x"]


def test_what_is_loaded_from_other_sites_is_found(tmp_path):
    broken = runpy.run_path(str(ROOT / "docs" / "check_links.py"))["broken"]
    loaded = ["https://example.org/a.js", "//example.org/b.png", "https://example.org/c.css"]
    body = f'<script src="{loaded[0]}"></script><img src="{loaded[1]}"><link rel="stylesheet" href="{loaded[2]}">'
    fine = '<a href="https://example.org/"></a><img src="data:image/png;base64,AA">'
    (tmp_path / "index.html").write_text(body + fine, encoding="utf-8")
    assert [link for _, link in broken(tmp_path)[0]] == loaded


def test_the_summary_of_benchmarks_counts_verdicts(tmp_path):
    summary = runpy.run_path(str(ROOT / "docs" / "benchmarks_summary.py"))["summary"]
    grid = ["+---+----+---------+", "| case | ours | verdict |", "+===+====+=========+"]
    rows = ["| a | 1 | met |", "| b c | 2 | missed: goal |", "| d | – | skipped: no data |", "| e | 3 | met |"]
    text = "\n".join(
        ["- facts", "", "**Some table**", "", *grid, *rows, grid[0], "", "**No verdicts**", "", "| x |", "| 1 |"]
    )
    (tmp_path / "benchmarks_x_table.inc").write_text(text, encoding="utf-8")
    (tmp_path / "benchmarks.rst").write_text("   .. include:: benchmarks_x_table.inc\n", encoding="utf-8")
    lines = summary(tmp_path).splitlines()
    assert lines[lines.index("   * - Some table") :] == ["   * - Some table", "     - 2 of 3", "     - b c"]
    real = summary(ROOT / "docs")
    assert real.count("   * - ") > 10
    assert "Gram matrices" in real.splitlines()[7]  # as on the page


# Blocks on the pages are what is printed, commands, and declarations; other code is in files that are run or compiled.
# Diffs are applied by test_how_to_add.py.
ONLY_SHOWN = {"none", "text", "console", "sh", "c", "diff"}


def blocks():
    """(page, language, text) of each code block on the pages."""
    for page in sorted((ROOT / "docs").rglob("*.rst")):
        if not {"_build", "generated"} & set(page.parts):
            text = page.read_text(encoding="utf-8")
            found = re.findall(
                r"^ *\.\. code-block:: *(\w*)\n(?: +:caption:.*\n)?\n((?:   (?!\.\. code-block).*\n|\n)+)",
                text,
                flags=re.M,
            )
            assert len(found) == text.count("code-block::"), page
            yield from ((page.name, language, textwrap.dedent(lines).strip("\n")) for language, lines in found)


def test_python_on_the_pages_runs():
    """Code is >>>, testcode or a file of docs/examples, all of which CI runs; not a block that is only shown."""
    found = list(blocks())
    assert len(found) > 10
    assert [(page, language) for page, language, _ in found if language not in ONLY_SHOWN] == []


def test_declarations_on_the_pages_are_those_of_the_header():
    import kernelrules

    header = (Path(kernelrules.get_include()) / "kernelrules" / "api.h").read_text(encoding="utf-8")
    shown = [line.partition(";")[0] for _, language, text in blocks() if language == "c" for line in text.splitlines()]
    assert shown
    assert [line for line in shown if line not in header] == []


def test_variables_that_are_read_are_documented():
    """Whatever the package reads from the environment, the page of the command has a paragraph on."""
    import kernelrules

    package = Path(kernelrules.__file__).parent
    sources = [path for suffix in ("py", "pyx", "h") for path in package.rglob(f"*.{suffix}")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    read = set(re.findall(r"(?:getenv\(|environ\.get\(|environ\[)[\"'](KERNELRULES_\w+)", text))
    assert "KERNELRULES_KEEP_MB" in read
    page = (ROOT / "docs" / "reference" / "command.rst").read_text(encoding="utf-8")
    assert [name for name in sorted(read) if f"\n``{name}``\n   " not in page] == []


def test_developers_pages_name_every_part_and_stage():
    import kernelrules

    package = Path(kernelrules.__file__).parent
    page = (ROOT / "docs/developers/architecture.rst").read_text(encoding="utf-8")
    parts = {path.stem for path in package.iterdir() if path.suffix in (".py", ".pxd", "") and path.stem[0] not in "_."}
    parts |= {path.name for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert [part for part in sorted(parts) if not re.search(rf"\b{part}\b", page)] == []
    # Folders and files of core are named by docstrings (test_architecture.py), which the page includes as they are.
    rooms = sorted(path.parent for path in (package / "core").glob("*/__init__.py"))
    assert len(rooms) > 5
    for folder in [package / "core", *rooms]:
        name = folder.relative_to(package.parent).as_posix()
        assert f'.. literalinclude:: ../../{name}/__init__.py\n   :language: none\n   :end-before: """\n' in page, name
    page = (ROOT / "docs/developers/contributing.rst").read_text(encoding="utf-8")
    for word in ("How to add a kernel", "How to add a criterion", "How to add a pruning method"):
        assert word in page
    script = ROOT / ".ci" / "run"
    if script.exists():
        stages = re.search(r"stages=\(([a-z ]+)\)", script.read_text(encoding="utf-8"))[1].split()
        assert [stage for stage in stages if f"``{stage}``" not in page] == []
