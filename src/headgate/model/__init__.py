"""The values of the domain: dataflows, tasks, streams, task types. Frozen, hashable, no I/O."""
