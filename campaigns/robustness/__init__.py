"""A campaign of robustness: every public callable with bad values, generated plans, commands with broken outputs.

Nothing but documented errors and plain signature errors may come out, nothing may be accepted that is nonsense, and
nothing may take more than a limit of work. `python -m campaigns.robustness`; a short version runs in tests.
"""
