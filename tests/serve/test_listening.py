"""Head and body of an answer leave together, in their order, also where the connection is closed at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from dpcompose.serve.listening import LONG, MANY, Joined


class Sent:
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def close(self) -> None:
        self.told.append("closed")

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return "closed" in self.told


def _told(*turns: list[bytes], closed: bool = False) -> list[object]:
    sent: Any = Sent()

    async def write() -> None:
        joined = Joined(sent)
        for turn in turns:
            for each in turn:
                joined.write(each)
            if closed:
                joined.close()
            await asyncio.sleep(0)
        assert joined.is_closing() is closed

    asyncio.run(write())
    return sent.told


def test_what_is_written_in_one_turn_is_sent_at_once() -> None:
    assert _told([b"head", b"body"], [b"more"], [b"a", b"b", b"c"]) == [
        b"headbody",
        b"more",
        b"abc",
    ]


def test_what_was_written_is_sent_before_the_end() -> None:
    assert _told([b"head", b"body"], closed=True) == [b"headbody", "closed"]


def test_much_is_not_kept() -> None:
    long = b"x" * (LONG + 1)
    sent: Any = Sent()

    async def write() -> None:
        joined = Joined(sent)
        joined.write(b"head")
        joined.write(long)
        assert sent.told == [b"head" + long]
        for _ in range(MANY):
            joined.write(b"y")
        assert sent.told[1:] == [b"y" * MANY]

    asyncio.run(write())
