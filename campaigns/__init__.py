"""Campaigns: promises attacked at length, as commands. Short versions of them run in the tests."""
