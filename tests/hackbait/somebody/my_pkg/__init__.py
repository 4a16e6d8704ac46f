"""Somebody's own package, as the README shows it."""
