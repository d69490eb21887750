"""Ground truth in ball arithmetic, written without looking at `dpcompose`, and the campaign that holds it against it.

Every oracle takes exact numbers (ints, floats meant as exactly that double, Fractions) and returns an `arb` that
encloses the truth. Closed forms: gaussian, optimal, residues (Laplace, randomized response and exponential, mixed),
atoms, lattices, sampled. Everything else: contour, over the laws of `law` and `normal`. In floats whose errors are
enclosed: the lattice of `tilted`, over the losses of `cells`. The campaign: `campaign`, over the compositions of
`families` and `subject`; of these files only it, `meeting`, `lines` and `verdicts` import dpcompose.
"""
