"""Robustness: every public callable with bad values, random plans, and commands with broken
outputs.

Only documented errors and signature errors may be raised, no nonsense may be accepted, and no call
may exceed a limit of work. `python -m campaigns.robustness`; a short version runs in tests.
"""
