"""The use cases, one file each; command line and other edges come in through here."""
