def theorem() -> None:
    """x."""
