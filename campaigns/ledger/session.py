"""One client of the power-loss campaign, recorded from outside: it charges, and says what was acknowledged.

python -m campaigns.ledger.session FOLDER WEAKNESS FROM TO
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from campaigns.ledger.weak import opened

NAME = "ledger.db"


def main() -> None:
    folder, weakness, first, stop = (
        Path(sys.argv[1]),
        sys.argv[2],
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
    with opened(str(folder / NAME), weakness) as ledger:
        ledger.scope("world", caps={"epsilon": 10**6}, actor="keeper")
        ledger.scope("world/acme", actor="keeper")
        for number in range(first, stop):
            receipt = ledger.charge(
                "world/acme", cost={"epsilon": "0.1"}, actor="client", key=f"key {number}"
            )
            os.write(1, f"acknowledged {receipt.key} {receipt.hash}\n".encode())


if __name__ == "__main__":
    main()
