"""RIoTBench's ETL and STATS as users of other systems write them, to be measured against.

Each program is run by itself, ``PROGRAM IN OUT TABLES``, with this folder on Python's path: some run among packages
that do not go with Headgate's. None of them imports Headgate. When all rows are out, a program says so and waits for
the end of its standard input (``peer_output.py``), so that its CPU time can be read while it is still there.
"""
