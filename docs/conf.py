"""Sphinx settings: Markdown pages (MyST), built with warnings as errors."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Headgate"
author = "The Headgate authors"
project_copyright = author
release = installed_version("headgate")
version = release

extensions = [
    "mathml",
    "offline",
    "myst_parser",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_math_renderer = "mathml"
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Headgate {release}"
html_static_path = ["_static"]
html_css_files = ["headgate.css"]
