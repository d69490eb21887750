"""One file a system: `PACKAGE`, whose version is printed, and `solve(case) -> Answer`, which is what is timed.

Where there is a `confirmed(case, answer) -> Answer`, it completes the answer after the clock has stopped.
"""

TITLES = {
    "ours": "dpcompose",
    "pld_4": "dp-accounting PLD, grid 1e-4",
    "pld_5": "dp-accounting PLD, grid 1e-5",
    "rdp": "dp-accounting RDP",
    "prv": "prv-accountant",
    "opacus_prv": "Opacus (prv)",
}
OURS, REFERENCE, RENYI = "ours", "pld_4", "rdp"
PEERS = tuple(name for name in TITLES if name != OURS)
