"""Linear Road: how many expressways two cores can serve."""
