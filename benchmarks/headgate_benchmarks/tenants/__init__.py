"""``headgate bench tenants``: attacks of a hostile submitter beside honest dataflows, on one engine."""
