"""What cores can do: pools and fragments, demand and usable power, who gets what, and the throughput equations."""
