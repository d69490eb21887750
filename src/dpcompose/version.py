"""The version of dpcompose."""

__version__ = "1.0.0"
