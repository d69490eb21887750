"""How a value shows itself: the attribute `.plot`, and the card that is printed and shown in a notebook. The reports
are imported on first use; the package sets `Plot.find` and `Card.find`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Arguments = Callable[..., tuple[Any, ...]]
    """What a picture is drawn of, from the value and the words in brackets that have no name."""


def _itself(value: Any) -> tuple[Any, ...]:
    return (value,)


class Pictures:
    """The plots of one value: a call draws the first, an attribute any other; both take the
    keywords of the gallery's function.

    Args:
        value: The value that is plotted.
        arguments: For the name of each function of the gallery, the function from the value to its
            positional arguments.
    """

    def __init__(self, value: Any, arguments: Mapping[str, Arguments]) -> None:
        self._value = value
        self._arguments = arguments

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(self, next(iter(self._arguments)))(*arguments, **named)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self._arguments:
            raise AttributeError(f"no picture {name!r}; there are: {', '.join(self._arguments)}")

        def draw(*arguments: Any, **named: Any) -> Any:
            return Plot.find(name)(*self._arguments[name](self._value, *arguments), **named)

        return draw

    def __dir__(self) -> list[str]:
        return list(self._arguments)

    def __repr__(self) -> str:
        return f"<pictures: {', '.join(self._arguments)}>"


class Plot:
    """The descriptor behind the attribute `plot` of a class.

    Args:
        drawn: The names of gallery functions that take the value itself; the first is the default
            plot.
        arguments: Other gallery functions by name, each with the function from the value to its
            positional arguments.
    """

    find: Callable[[str], Callable[..., Any]]
    """A function of the gallery, by its name."""

    def __init__(self, *drawn: str, **arguments: Arguments) -> None:
        self._arguments: dict[str, Arguments] = {**dict.fromkeys(drawn, _itself), **arguments}

    def __get__(self, instance: object, owner: type) -> Pictures:
        return Pictures(instance, self._arguments)


class Card:
    """A result that shows itself; the package sets `Card.find`, a function of the reports by its name."""

    __slots__ = ()
    find: ClassVar[Callable[[str], Callable[..., str]]]

    def __str__(self) -> str:
        return Card.find("card_text")(self)

    def _repr_html_(self) -> str:
        return Card.find("card_html")(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))
