"""Private answers on real tables: charged to a ledger before release, aggregated exactly, noised by
exact samplers.

    import dpcompose.release as release
    flights = release.table("flights.parquet", unit="tailnum", max_rows_per_unit=50)
    session = release.Session(flights, ledger=ledger, scope="world/flights", actor="ana")
    answer = session.count(by="dest", keys=airports, spend={"epsilon": 0.1})

Only this package combines theory, ledger and data. It imports the database engines and opendp when
they are first needed.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
