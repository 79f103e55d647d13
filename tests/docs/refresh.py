"""Writes what commands print today into a page: ``python -m tests.docs.refresh PAGE...``.

Run it at the root of a clone after a change of messages, and read the difference before you commit it. Outputs that
still match, ``...`` included, stay as they are. Commands that need Spark are run on one that is started for it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.docs import pages
from tests.docs.shell import Shell, let_workers_import

ROOT = Path(__file__).resolve().parents[2]


def refresh(page: Path) -> str:
    """The page's text, with what its commands print now; runs in the current folder."""
    text = page.read_text(encoding="utf-8")
    with Shell() as shell:
        for language, block in pages.blocks(page):
            if name := pages.file_name(block):
                Path(name).write_text(block, encoding="utf-8")
            if language == "console":
                text = text.replace(block, "".join(_shown(shell, *command) for command in pages.commands(block)))
    return text


def _shown(shell: Shell, command: str, wanted: str) -> str:
    printed = "".join(f"{line.rstrip()}\n" for line in shell.run(command).splitlines())
    return f"$ {command}\n{wanted if pages.matches(wanted, printed) else printed}"


def main() -> None:
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    names = [Path(name).absolute() for name in sys.argv[1:]]
    spark = None
    if any(pages.needs_spark_page(page) for page in names):
        from headgate.runtime.engine import engine as engine_module
        from headgate.runtime.spark_internals.session import open_session

        spark = open_session("local[2]")
        engine_module.Engine = partial(engine_module.Engine, spark=spark)  # type: ignore[assignment,misc]
    for page in names:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "examples", Path(folder) / "examples")
            os.chdir(folder)
            if spark:
                let_workers_import(spark, Path(folder))
            written = refresh(page)
            os.chdir(ROOT)
        print(f"{page.name}: {'current' if written == page.read_text(encoding='utf-8') else 'changed'}")
        page.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
