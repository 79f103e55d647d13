"""RIoTBench's task types for Headgate: made records, SenML and XML, statistics, files, models and their training, MQTT.

An entry point of the group ``headgate.task_types`` names :data:`TYPES`; nothing in Headgate knows this package.
"""

from __future__ import annotations

from headgate_riotbench import (
    annotate,
    bloom_filter,
    files,
    gather,
    generate,
    interpolate,
    models,
    mqtt,
    statistics,
    training,
)
from headgate_riotbench.parse_senml import PARSE_SENML
from headgate_riotbench.parse_xml import PARSE_XML
from headgate_riotbench.to_senml import TO_SENML

__all__ = ["TYPES"]

TYPES = (
    *generate.TYPES,
    PARSE_SENML,
    PARSE_XML,
    TO_SENML,
    *annotate.TYPES,
    *bloom_filter.TYPES,
    *interpolate.TYPES,
    *statistics.TYPES,
    *gather.TYPES,
    *models.TYPES,
    *files.TYPES,
    *training.TYPES,
    *mqtt.TYPES,
)
