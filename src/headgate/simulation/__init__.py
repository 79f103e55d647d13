"""What would happen: queueing networks simulated event by event, as the truth that models are measured against."""
