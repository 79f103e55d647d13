"""Beyond equal signatures: relational tasks in a normal form, so that a wider stream serves a narrower wish."""
