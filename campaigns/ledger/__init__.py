"""Campaigns against the ledger: what it promises, attacked at length. Short versions run in tests/ledger.

python -m campaigns.ledger.concurrency | kills | power | faults | tampering | keys | sums | periods
"""
