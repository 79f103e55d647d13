"""What looking ahead brings."""
