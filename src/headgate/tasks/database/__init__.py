"""SQL databases: the task types that write tables, and what they need of a database."""
