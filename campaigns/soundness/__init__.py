"""Random compositions compared with the truth: `python -m campaigns.soundness`. A short version
runs in tests.
"""
