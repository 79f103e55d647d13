"""What would happen: dataflows, traces and clusters that are not there. Time and randomness are arguments."""
