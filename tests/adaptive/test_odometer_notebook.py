"""An odometer in a notebook."""

from dpcompose.adaptive.odometer import Odometer


def test_an_odometer_says_how_sure_it_is() -> None:
    shown = Odometer(1e-6)._repr_html_()
    assert (
        "probability 10⁻⁶" in shown
        and "boundary: Mixture(" in shown
        and "of their own" not in shown
    )
    assert "of their own: 10⁻⁷" in Odometer(1e-6, mechanism_delta=1e-7)._repr_html_()
