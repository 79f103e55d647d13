"""``headgate bench deploy``: from a rate to machines, on P-DEPLOY's applications."""
