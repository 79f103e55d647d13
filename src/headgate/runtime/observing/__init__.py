"""What is measured while dataflows run."""
