"""The order in which checkpoints are evaluated, so that an onset costs a few of them."""
