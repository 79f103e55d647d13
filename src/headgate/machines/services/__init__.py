"""A broker and a database on this machine, for trials, examples and tests: real ones, on the loopback interface."""
