"""What is stored of a checked dataflow is decoded to the same dataflow, without a check."""

from __future__ import annotations

import json

from hypothesis import given, settings

from headgate.documents.decode import from_document
from headgate.documents.document import to_document
from headgate.model.dataflow import Dataflow
from headgate.tasks.registry import default_registry
from tests.strategies import dataflows

REGISTRY = default_registry()


@settings(max_examples=300)
@given(dataflow=dataflows)
def test_a_stored_document_is_decoded_to_the_same_dataflow(dataflow: Dataflow) -> None:
    document = json.loads(json.dumps(to_document(dataflow)))
    again = from_document(document, REGISTRY)
    assert again == dataflow
    assert to_document(again) == document
