"""Planning: which alternates, cores and machines are best for given rates and limits."""
