def calibrate() -> None:
    """x."""
