"""One tenant's fault is not another's outage."""
