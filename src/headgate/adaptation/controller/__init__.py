"""The controller: decides while dataflows run, writes down what and why, and carries it out. No Spark here."""
