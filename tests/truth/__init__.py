"""Ground truth in ball arithmetic, written without looking at `dpcompose`; only `campaign` imports it.

Every oracle takes exact numbers (ints, floats meant as exactly that double, Fractions) and returns an `arb` that
encloses the truth. Closed forms: gaussian, optimal, residues (Laplace, randomized response and exponential, mixed),
atoms, lattices, sampled. Everything else: contour, over the laws of `law` and `normal`. A second opinion in floats:
tilted.
"""
