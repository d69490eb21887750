"""Long tests of the guarantees of releases, as commands. Short versions run in tests/release.

python -m campaigns.release.neighbors | audit | kills | engines
"""
