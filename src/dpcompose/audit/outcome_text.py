"""Serialization of outcomes to JSON and back, exact to the last bit, for the journal of an audit."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from dpcompose.audit.outcome import Outcome, Outcomes, Reading, read, rows_of

LARGEST = 1 << 33
"""The largest size, in bytes, of the unpacked outcomes of a batch."""
MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)
"""The exceptions raised while reading a text that does not describe an outcome."""
_SEEN = ("raised", "message", "warned", "timeout", "printed", "errors", "logged", "files")


def text_of_outcomes(outcomes: Outcomes) -> dict[str, Any]:
    """A batch of outcomes for JSON: plain numbers as their bytes, others as JSON, both compressed
    and in base64.
    """
    if outcomes.dtype.kind in "fiub":
        plain = np.ascontiguousarray(outcomes).astype(outcomes.dtype.newbyteorder("<"))
        return {
            "dtype": plain.dtype.str,
            "shape": list(plain.shape),
            "packed": _packed(plain.tobytes()),
        }
    rows = outcomes if outcomes.dtype == object else rows_of(outcomes.tolist())
    return {
        "packed": _packed(json.dumps([text_of_outcome(each) for each in rows.tolist()]).encode())
    }


def outcomes_of(text: dict[str, Any], rows: int) -> Outcomes:
    """The outcomes that `text_of_outcomes` serialized.

    Args:
        text: The serialized outcomes.
        rows: The expected number of outcomes.

    Raises:
        ValueError, KeyError, TypeError: If the text is malformed or has another number of outcomes.
    """
    unpacked = _unpacked(text["packed"])
    if "dtype" in text:
        dtype = np.dtype(text["dtype"])
        if dtype.kind not in "fiub" or text["shape"][:1] != [rows]:
            raise ValueError(f"the array does not hold the numbers of {rows} outcomes")
        return (
            np.frombuffer(unpacked, dtype=dtype)
            .reshape(text["shape"])
            .astype(dtype.newbyteorder("="))
        )
    found: Outcomes = np.empty(rows, dtype=object)
    found[:] = [outcome_of(each) for each in json.loads(unpacked)]
    return found


def _packed(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text, 1)).decode()


def _unpacked(text: str) -> bytes:
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(base64.b64decode(text, validate=True), LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not reader.eof:
        raise ValueError("outcomes that end too early")
    return found


def text_of_outcome(row: Any) -> Any:
    """One outcome as a value for JSON; `row` may also be a bare answer."""
    outcome: Outcome = row if isinstance(row, Outcome) else rows_of([row])[0]
    answer = _answer(outcome.value)
    if outcome.alone:
        return answer
    told = {name: seen for name, seen in vars(outcome).items() if name in _SEEN}
    return {"value": answer, **told, "seconds": _hex(outcome.seconds)}


def _answer(value: Any) -> Any:
    if value is None:
        return None
    if type(value) is float:
        return _hex(value)
    if not isinstance(value, Reading):
        return _answer(read(value))
    first = struct.pack(f"<{len(value.leaves)}d", *(number for _, number in value.leaves)).hex()
    leaves, (places, numbers) = [first, *(place for place, _ in value.leaves)], value.further
    beyond = (
        [list(places), numbers.hex(), [*map(list, value.letters)]]
        if places or value.letters
        else []
    )
    return [value.kind, leaves, _hex(value.code), dict(value.unread), *beyond]


def outcome_of(row: Any) -> Outcome:
    """The outcome that `text_of_outcome` serialized; raises one of `MALFORMED` if the value is not
    of that form.
    """
    if not isinstance(row, dict):
        return Outcome(_value(row))
    told: dict[str, Any] = cast("dict[str, Any]", row)
    return Outcome(
        _value(told["value"]), str(told["raised"]), str(told["message"]), tuple(map(str, told["warned"])),
        timeout=bool(told["timeout"]), printed=str(told["printed"]), seconds=_number(told["seconds"]),
        errors=str(told.get("errors", "")), logged=tuple(map(str, told.get("logged", ()))),
        files=tuple(map(str, told.get("files", ()))),
    )  # fmt: skip


def _value(answer: Any) -> Any:
    match answer:
        case None:
            return None
        case str():
            return _number(answer)
        case [str(kind), leaves, code, *beyond]:
            # A journal of an earlier version has pairs of places and numbers, and does not say what was not looked at.
            early = [*map(list, leaves)] if not leaves or isinstance(leaves[0], list) else None
            seen = (
                _leaves(*leaves)
                if early is None
                else ((place, _number(number)) for place, number in early)
            )
            first = tuple((str(place), number) for place, number in seen)
            missed = cast(
                "dict[str, int]", beyond.pop(0) if beyond and isinstance(beyond[0], dict) else {}
            )
            unread = tuple((str(name), int(number)) for name, number in missed.items())
            if not beyond:
                return Reading(kind, first, _number(code), unread=unread)
            places, numbers, letters = beyond
            further = tuple(map(str, places)), bytes.fromhex(numbers)
            if len(further[1]) != 8 * len(further[0]):
                raise ValueError("paths and numbers differ in count")
            texts = tuple((str(place), str(text)) for place, text in letters)
            return Reading(kind, first, _number(code), further, texts, unread)
        case _:
            raise ValueError(f"{answer!r} is no answer")


def _leaves(numbers: str, *places: Any) -> Iterable[tuple[Any, float]]:
    return zip(places, struct.unpack(f"<{len(places)}d", bytes.fromhex(numbers)), strict=True)


def _hex(number: float) -> str:
    """The eight bytes of a float in hexadecimal, including the payload of a NaN."""
    return struct.pack("<d", number).hex()


def _number(text: str) -> float:
    return struct.unpack("<d", bytes.fromhex(text))[0]
