"""Campaigns against releases: what they promise, attacked at length. Short versions run in tests/release.

python -m campaigns.release.neighbors | audit | kills | engines
"""
