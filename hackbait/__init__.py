"""Environments whose graders can be gamed on purpose. Standard library only."""
