"""Sphinx's settings. From the repository's root: `sphinx-build -W --keep-going -n -b html docs docs/_build/html`."""

import ast
import contextlib
import io
import re
import runpy
import sys
import textwrap
from pathlib import Path

import matplotlib
from docutils import nodes
from latex2mathml.converter import convert
from matplotlib import pyplot

import kernelrules

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # what this file is made of lies beside it

project = "kernelrules"
author = "the kernelrules developers"
copyright = author
version = release = kernelrules.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "numpydoc",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "code"  # `x` in a docstring is code
highlight_language = "python"
smartquotes_action = "qe"  # two hyphens stay two hyphens: options are written with them
toc_object_entries = False  # the sidebar names pages and sections only

# ---- reference: one page for each name in an autosummary table, from its docstring ---------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them: _templates/autosummary/class.rst
# Sections known, in order and once; a summary of one line; every described parameter with a type and a description.
# Not asked for: capitals (a summary may start with a formula), "See Also", an extended summary.
numpydoc_validation_checks = {
    "GL05", "GL06", "GL07", "GL08", "SS01", "SS04", "SS06", "PR03", "PR04", "PR05", "PR06", "PR07", "PR10", "RT03",
}  # fmt: skip

# ---- doctest: `sphinx-build -b doctest docs docs/_build/doctest` ---------------------------------------------------
# Data frames are shown with pandas, which building the pages does not need.
doctest_global_setup = """
import kernelrules
try:
    import pandas
except ImportError:
    pandas = None
"""
doctest_global_cleanup = """
import sys
if "matplotlib.pyplot" in sys.modules:
    sys.modules["matplotlib.pyplot"].close("all")
"""

# ---- html ----------------------------------------------------------------------------------------------------------
html_theme = "alabaster"
html_theme_options = {
    "description": "Kernel machines and rule learners over plain arrays",
    "fixed_sidebar": True,
    "page_width": "900px",  # in narrower windows the sidebar goes above the page; kernelrules.css lets pages be wider
    "body_max_width": "none",  # lines of 120 characters fit
    "sidebar_width": "230px",
    "body_text_align": "left",
    "show_powered_by": False,
}
html_static_path = ["_static"]
html_css_files = ["kernelrules.css"]
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_show_sourcelink = False
html_math_renderer = "mathml"


def summarise_benchmarks(app):
    """What the verdicts of all tables say together, for the top of benchmarks.rst."""
    from benchmarks_summary import summary

    out = HERE / "_build" / "benchmarks_summary.inc"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(summary(HERE), encoding="utf-8")


def draw_figures(app):
    """Run each script in figures/ whose picture is missing or older than it; the pictures go to _build/figures.

    Older than what was measured, too: a script may draw it.
    """
    measured = max(path.stat().st_mtime for path in HERE.glob("*.json"))
    folder = HERE / "_build" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.append(str(HERE / "figures"))  # what several scripts share lies beside them
    for script in sorted((HERE / "figures").glob("[!_]*.py")):
        picture = folder / f"{script.stem}.png"
        if not picture.exists() or picture.stat().st_mtime < max(script.stat().st_mtime, measured):
            runpy.run_path(str(script))["draw"](picture)


def build_gallery(app):
    """A page for each script in examples/gallery: its docstring, its picture, its code, and what it prints.

    Scripts run where their picture is missing or older; pictures and what was printed go to _build/gallery.
    """
    matplotlib.use("Agg")
    folder, pages = HERE / "_build" / "gallery", HERE / "gallery" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    pages.mkdir(exist_ok=True)
    for script in sorted((HERE / "examples" / "gallery").glob("*.py")):
        picture, printed = folder / f"{script.stem}.png", folder / f"{script.stem}.txt"
        if not picture.exists() or picture.stat().st_mtime < script.stat().st_mtime:
            pyplot.close("all")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                runpy.run_path(str(script), run_name="__main__")
            printed.write_text(said.getvalue(), encoding="utf-8")
            pyplot.gcf().savefig(picture, dpi=120)
        text = gallery_page(script, printed.read_text(encoding="utf-8"))
        page = pages / f"{script.stem}.rst"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def gallery_page(script, printed):
    """The page of a script."""
    parsed = ast.parse(script.read_text(encoding="utf-8"))
    title, _, words = ast.get_docstring(parsed).partition("\n")
    lines = [
        title, "=" * len(title), "", words.strip(), "",
        f".. figure:: ../../_build/gallery/{script.stem}.png", f"   :alt: {title}", "",
        f".. literalinclude:: ../../examples/gallery/{script.name}", f"   :lines: {parsed.body[1].lineno}-", "",
    ]  # fmt: skip
    if printed:
        lines += ["It prints", "", ".. code-block:: none", "", textwrap.indent(printed, "   ")]
    return "\n".join(lines)


def inline_math(writer, node):
    """A formula within a line, as MathML: browsers draw it, and nothing is fetched from another site."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display_math(writer, node):
    """Formulas with lines of their own; a blank line stands between two of them, and two backslashes break one."""
    for formula in re.split(r"\n\s*\n", node.astext().strip()):
        lines = rf"\begin{{aligned}}{formula}\end{{aligned}}" if r"\\" in formula else formula
        writer.body.append(f'<div class="math">{convert(lines, display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Hook the figures and the gallery in before any page is read, and the formulas."""
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    app.connect("builder-inited", summarise_benchmarks)
    app.connect("builder-inited", draw_figures)
    app.connect("builder-inited", build_gallery, priority=400)  # before autosummary looks for pages
