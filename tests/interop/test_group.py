"""Two processes train together: each step is charged once, and one of them refuses for both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpcompose.errors import UnsupportedError
from tests.interop.conftest import library

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]


def trained(rank: int) -> dict[str, Any]:
    """Trainings of one of two processes: what each charged and refused."""
    import opacus  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]
    from opacus.distributed import (  # pyright: ignore[reportMissingImports]
        DifferentiallyPrivateDistributedDataParallel as Together,
    )
    from opacus.utils.fsdp_utils import FSDP2Wrapper  # pyright: ignore[reportMissingImports]

    from tests.interop.test_opacus import Training, records

    torch.set_num_threads(1)

    class Group(Training):
        def __init__(self) -> None:
            linear, torch.nn.Linear = torch.nn.Linear, lambda *sizes: Together(linear(*sizes))
            try:
                loader = torch.utils.data.DataLoader(records(), batch_size=10)
                super().__init__(loader)
            finally:
                torch.nn.Linear = linear

    def refusal(training: Any, **options: Any) -> str:
        try:
            training.epoch(**options)
        except UnsupportedError as error:
            return str(error)
        return ""

    honest, twice, alike = Group(), Group(), Group()
    outcome: dict[str, Any] = {"honest": [refusal(honest), refusal(honest), honest.history]}
    weights = next(honest.model.parameters()).detach().flatten().tolist()
    outcome["weights"] = weights

    def batches(training: Any) -> Any:
        for at, (x, y) in enumerate(training.loader):
            again = 1 + (at == 2 and rank == 1)
            yield x.repeat(again, 1), y.repeat(again)

    outcome["twice"] = [refusal(twice, batches=batches(twice)), twice.history]
    hook = alike.optimizer.charging
    hook._noise.generator.manual_seed(5)
    hook._noise.used()
    outcome["alike"] = [refusal(alike), alike.history]

    loader = torch.utils.data.DataLoader(records(), batch_size=10)
    model = FSDP2Wrapper(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine = opacus.PrivacyEngine(accountant="dpcompose")
    model, optimizer, criterion, private = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0,
        criterion=torch.nn.CrossEntropyLoss(), max_grad_norm=1.0, grad_sample_mode="ghost_fsdp",
    )  # fmt: skip
    for x, y in private:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    outcome["sharded"] = [engine.accountant.history, ""]
    try:
        optimizer.step()  # on the last batch again
    except UnsupportedError as error:
        outcome["sharded"][1] = str(error)
    return outcome


def test_two_processes_are_charged_once_and_refuse_together(tmp_path: Path) -> None:
    library("opacus")
    start = [sys.executable, "-m", "tests.interop.test_group", str(tmp_path)]
    with (tmp_path / "errors").open("w") as errors:
        processes = [
            subprocess.Popen([*start, str(rank)], stderr=errors, stdout=errors) for rank in (0, 1)
        ]
        codes = [process.wait(300) for process in processes]
    assert codes == [0, 0], (tmp_path / "errors").read_text()[-3000:]
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first["honest"] == second["honest"] == ["", "", [[1.0, 0.05, 40]]]
    assert first["weights"] == second["weights"]
    assert "another process" in first["twice"][0] and "records were drawn" in second["twice"][0]
    assert first["twice"][1] == second["twice"][1] == [[1.0, 1.0, 2]]
    assert "noise that processes have in common" in first["alike"][0]
    assert "noise that processes have in common" in second["alike"][0]
    for own in (first, second):
        assert own["sharded"][0] == [[1.0, 0.05, 20]] and "no batch was drawn" in own["sharded"][1]
    assert first["alike"][1] == second["alike"][1] == []


def main(folder: str, rank: int) -> None:
    import torch.distributed as group  # pyright: ignore[reportMissingImports]

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    group.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    Path(folder, f"{rank}.json").write_text(json.dumps(trained(rank)))
    group.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
