"""Answers on real tables: charged before they are given, aggregated exactly, and noisy by exact samplers.

    import dpcompose.release as release
    flights = release.table("flights.parquet", unit="tailnum", max_rows_per_unit=50)
    session = release.Session(flights, ledger=ledger, scope="world/flights", actor="ana")
    answer = session.count(by="dest", keys=airports, spend={"epsilon": 0.1})

The only room where theory, ledger and data meet. The engines and opendp are imported when they are needed.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
