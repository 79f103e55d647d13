"""A judge from outside: computes what must be in every sink from what the outside world saw, and compares.

The judge knows input files, requests with the clocks of their answers, and what was killed when. It computes the
expected rows with plain Python and imports nothing of ``headgate.runtime``, ``headgate.sharing`` or ``headgate.tasks``.

- :mod:`tests.judge.history`: what was seen
- :mod:`tests.judge.flows`: the dataflows that are judged, and what each of their sinks must hold
- :mod:`tests.judge.sinks`: what the sinks hold
- :mod:`tests.judge.timeline`: which change each row was processed under
- :mod:`tests.judge.verdict`: what is lost, doubled, out of order, under a stale plan, or half applied
- :mod:`tests.judge.rig`: an engine in processes of its own, fed, changed, killed and started again
"""
