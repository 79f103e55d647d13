"""Sphinx settings: Markdown pages (MyST), built with warnings as errors."""

import logging
from importlib.metadata import version as installed_version

project = "Headgate"
author = "The Headgate authors"
project_copyright = author
release = installed_version("headgate")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "description"

exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Headgate {release}"

# A section may have no pages yet. Sphinx gives that warning no type, so `suppress_warnings` cannot name it.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: getattr(record, "subtype", None) != "empty_glob"
)
