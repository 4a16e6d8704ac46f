"""From a case and a checkpoint to an onset."""
