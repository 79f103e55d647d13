"""Who may do what: principals with roles and teams, and one function that decides. Pure; it knows no socket."""
