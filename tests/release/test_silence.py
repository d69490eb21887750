"""Library warnings are off in every thread that runs a query, and restored when the last one has
finished.
"""

from __future__ import annotations

import threading
import warnings

import pytest

from dpcompose.release.query import without_warnings


def test_a_thread_that_ends_first_leaves_the_others_in_silence() -> None:
    entered, left, raised = threading.Event(), threading.Event(), list[Warning]()

    def slow() -> None:
        with without_warnings():
            entered.set()
            assert left.wait(60)
            try:
                warnings.warn("of an engine", DeprecationWarning, stacklevel=1)
            except DeprecationWarning as found:
                raised.append(found)

    before, thread = list(warnings.filters), threading.Thread(target=slow)
    with without_warnings():
        thread.start()
        assert entered.wait(60)
    left.set()
    thread.join()
    assert not raised and list(warnings.filters) == before


def test_an_error_ends_the_silence() -> None:
    before = list(warnings.filters)
    with pytest.raises(KeyError), without_warnings(), without_warnings():
        raise KeyError
    assert list(warnings.filters) == before
