"""Bridges to trainers and evaluators; the rest of the package never imports them."""
