"""An event simulator of queueing networks, which the queueing models are measured against."""
