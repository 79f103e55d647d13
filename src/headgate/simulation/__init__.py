"""What would happen: queueing networks, dataflows and traces that are not there. Time and randomness are arguments."""
