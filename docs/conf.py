"""Sphinx configuration.

Build the pages from the root of the repository: `sphinx-build -W --keep-going -n -b html docs docs/_build/html`.
"""

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
sys.path.append(str(HERE))  # modules of this configuration

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
smartquotes_action = "qe"  # keep "--" as two hyphens, for command-line options
toc_object_entries = False  # only pages and sections in the sidebar

# ---- reference: one page per name in an autosummary table, from its docstring --------------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings document the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them: _templates/autosummary/class.rst
# Known sections, in order and once; a one-line summary; a type and a description of every documented parameter.
# Not required: capital letters (a summary may start with a formula), "See Also", an extended summary.
numpydoc_validation_checks = {
    "GL05", "GL06", "GL07", "GL08", "SS01", "SS04", "SS06", "PR03", "PR04", "PR05", "PR06", "PR07", "PR10", "RT03",
}  # fmt: skip

# ---- doctest: `sphinx-build -b doctest docs docs/_build/doctest` ---------------------------------------------------
# Examples with data frames need pandas, which building the pages does not require.
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
    "description": "Kernel machines, decision trees and rule learners over plain arrays",
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
    """Write the summary of all benchmark tables, for the top of benchmarks.rst."""
    from benchmarks_summary import summary

    out = HERE / "_build" / "benchmarks_summary.inc"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(summary(HERE), encoding="utf-8")


def draw_figures(app):
    """Run each script in figures/ whose figure is missing or out of date; figures go to _build/figures.

    A figure is out of date if it is older than its script or than the measurements, which a script may draw.
    """
    measured = max(path.stat().st_mtime for path in HERE.glob("*.json"))
    folder = HERE / "_build" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.append(str(HERE / "figures"))  # modules shared by the scripts
    for script in sorted((HERE / "figures").glob("[!_]*.py")):
        picture = folder / f"{script.stem}.png"
        if not picture.exists() or picture.stat().st_mtime < max(script.stat().st_mtime, measured):
            runpy.run_path(str(script))["draw"](picture)


def build_gallery(app):
    """Write a page for each script in examples/gallery: its docstring, its figure, its code, and its output.

    Scripts run if their figure is missing or out of date; figures and output go to _build/gallery.
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
    """Return the gallery page of a script."""
    parsed = ast.parse(script.read_text(encoding="utf-8"))
    title, _, words = ast.get_docstring(parsed).partition("\n")
    lines = [
        title, "=" * len(title), "", words.strip(), "",
        f".. figure:: ../../_build/gallery/{script.stem}.png", f"   :alt: {title}", "",
        f".. literalinclude:: ../../examples/gallery/{script.name}", f"   :lines: {parsed.body[1].lineno}-", "",
    ]  # fmt: skip
    if printed:
        lines += ["Output:", "", ".. code-block:: none", "", textwrap.indent(printed, "   ")]
    return "\n".join(lines)


def inline_math(writer, node):
    """Render an inline formula as MathML, which browsers draw without external resources."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display_math(writer, node):
    """Render displayed formulas; a blank line separates formulas, and two backslashes break a line."""
    for formula in re.split(r"\n\s*\n", node.astext().strip()):
        lines = rf"\begin{{aligned}}{formula}\end{{aligned}}" if r"\\" in formula else formula
        writer.body.append(f'<div class="math">{convert(lines, display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the math renderer, and the figures and the gallery, which are built before any page is read."""
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    app.connect("builder-inited", summarise_benchmarks)
    app.connect("builder-inited", draw_figures)
    app.connect("builder-inited", build_gallery, priority=400)  # before autosummary searches for pages
