"""The command line: parse arguments, call the service, show what came of it."""
