"""``headgate schema``: the JSON Schema of dataflow files, for editors."""

from __future__ import annotations

import json

from headgate.cli.output import Force, Output, known_types, write_text
from headgate.documents.document import json_schema

__all__ = ["schema"]


def schema(
    output: Output = None,
    force: Force = False,
) -> None:
    """Print the JSON Schema of dataflow files, with the options of every task type.

    Point an editor at it to complete fields and to underline mistakes as you write.

    Example: [bold]headgate schema -o dataflow.schema.json[/bold]
    """
    write_text(json.dumps(json_schema(known_types()), indent=2) + "\n", output, force)
