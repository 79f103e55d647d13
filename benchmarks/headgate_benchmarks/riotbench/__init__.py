"""RIoTBench's applications beside other systems."""
