"""Time, tightness and memory of dpcompose against its peers, side by side in one run: `python -m benchmarks.run`.

case.py and worker.py and systems/ run in every worker, with nothing but the standard library and one system; the rest
runs where dpcompose is installed.
"""
