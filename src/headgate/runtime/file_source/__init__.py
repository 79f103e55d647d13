"""The file source: files of a folder as a stream, each read once, in the order of modification and name."""
