"""The values that everything else speaks of: dataflows, tasks, streams, task types. Frozen, hashable, no I/O."""
