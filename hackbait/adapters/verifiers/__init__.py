"""The environments in verifiers: tasksets from 0.4 on, `load_environment` for 0.2 and 0.3.

A folder an environment, each installable; nothing else of ours imports what is in here.
"""
