"""The compiled loops, and nothing else.

Each is a plain loop over arrays that NumPy cannot express in one pass. Floating-point operations
stand in the order in which the published functions take them, so that results
agree to the last bit; numba neither reorders nor fuses them. What is done for every pixel stands in
loops without branches over a line, so that the compiler takes many pixels at once; what has to be looked
up, in loops of its own.
"""
