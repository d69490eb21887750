"""What a campaign needs beyond Python, and this machine may lack."""


class MissingError(Exception):
    """Something is not installed; the message names it, and how to get it."""
