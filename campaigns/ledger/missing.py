"""The error for a tool that a campaign needs and this machine lacks."""


class MissingError(Exception):
    """Something is not installed; the message names it, and how to get it."""
