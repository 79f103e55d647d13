"""What SQL may do: which functions a dataflow may call, and bounds for those whose results or time its rows decide."""
