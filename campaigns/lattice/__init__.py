"""Compositions of noises on a lattice of losses: a second way to both ends of an answer.

`python -m campaigns.lattice` holds the library against it. Nothing in the library uses it: it shares numpy, the kernel's
peak and `log_mixed` with the contours, and nothing else.
"""
