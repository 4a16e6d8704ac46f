"""What a person runs: one file a verb."""
