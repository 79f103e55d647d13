"""Functions of authors in processes of their own: what these may do, how they are started, and how rows get there."""
