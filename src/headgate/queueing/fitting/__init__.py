"""From what was measured to a network: rates, service times and routes, each with how far it can be trusted."""
