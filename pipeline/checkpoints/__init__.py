"""One file a checkpoint layout; how checkpoints are found and told apart."""
