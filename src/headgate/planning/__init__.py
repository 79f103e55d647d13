"""What is best: the objective that plans are judged by, and deployments that follow from rates alone."""
