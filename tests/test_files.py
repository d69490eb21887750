"""Files: a number names none, a pipe without a writer does not block, and what is written is whole or as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dpcompose import files
from dpcompose.errors import DomainError, PlanError
from dpcompose.ledger import Ledger
from dpcompose.plan import Plan
from dpcompose.release.question import questions

NO_NAMES = [3, True, -1, 1.5, None, b"plan.toml", ["plan.toml"], {}, "a\0b", "\ud800"]
READERS = [Plan.read, questions]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("value", NO_NAMES, ids=[repr(each).split(" at ")[0] for each in NO_NAMES])
def test_what_names_no_file_is_refused(reader: Any, value: Any) -> None:
    with pytest.raises((DomainError, PlanError)):
        reader(value)


@pytest.mark.parametrize("reader", READERS)
def test_an_open_descriptor_is_not_taken_for_a_file(reader: Any, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"somebody else's")
    handle = os.open(tmp_path / "other", os.O_RDONLY)
    try:
        with pytest.raises(DomainError, match="the name of a file"):
            reader(handle)
        assert os.read(handle, 100) == b"somebody else's"
    finally:
        os.close(handle)


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_without_a_writer_is_an_empty_file(reader: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PlanError, match="at least one"):
        reader(tmp_path / "pipe")


def test_a_pipe_that_is_written_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'[[mechanism]]\nkind = "gaussian"\nsigma = 2.0\n')
    os.close(writing)
    try:
        assert Plan.read(f"/dev/fd/{reading}").entries[0].kind == "gaussian"
    finally:
        os.close(reading)


def test_a_file_that_fails_half_way_is_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text("old")
    with pytest.raises(OSError, match="No space"), files.replacing(place) as beside:
        beside.write_text("half a pa")
        raise OSError(28, "No space left on device")
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text("old")
    place.chmod(0o640)
    with files.replacing(place) as beside:
        beside.write_text("new")
    assert place.read_text() == "new"
    assert place.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_is_replaced_and_what_it_points_to_is_left_alone(tmp_path: Path) -> None:
    plan, link = tmp_path / "plan.toml", tmp_path / "page.html"
    plan.write_text("the plan")
    link.symlink_to(plan)
    with files.replacing(link) as beside:
        beside.write_text("the page")
    assert (plan.read_text(), link.read_text(), link.is_symlink()) == (
        "the plan",
        "the page",
        False,
    )


def test_a_pipe_a_device_and_a_directory_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/null"), tmp_path):
        with pytest.raises(OSError, match="something else"), files.replacing(place):
            pytest.fail("it was written")


def test_a_message_holds_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as plan:
        Plan.read(tmp_path / "\x1b[2J\nsound: true\x9b")
    with pytest.raises(DomainError) as store:
        Ledger.open(str(tmp_path / "no\x1b[2Jwhere\n" / "l.db"), create=False)
    assert str(plan.value).isprintable() and "\\x1b[2J\\nsound" in str(plan.value)
    assert str(store.value).isprintable()


@pytest.mark.parametrize("url", ["\ud800", "sqlite:///\ud800", "postgresql://\ud800/x"])
def test_a_ledger_has_a_name_that_can_be_written(url: str) -> None:
    with pytest.raises(DomainError, match="url"):
        Ledger.open(url)
