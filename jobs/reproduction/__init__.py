"""The study of base rate against onset, part by part; the verb is jobs/reproduce.py."""
