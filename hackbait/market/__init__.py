"""What the environment market_structure is made of: its scenarios, its readers and its rewards."""
