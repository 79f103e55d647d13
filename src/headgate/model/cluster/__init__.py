"""Where dataflows run, as values: machines and their prices, deployments, observations."""
