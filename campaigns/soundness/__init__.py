"""Random compositions held against the truth: `python -m campaigns.soundness`. A short version runs in tests."""
