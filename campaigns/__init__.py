"""Campaigns: long randomized tests of the project's guarantees, as commands. Short versions of them
run in the tests.
"""
