"""`robustgen calibrate`: the strength of corruptions, and constants for other image sizes.

`strengths` measures; `trajectories` defines how constants may change, `matching` searches for those that fit
another size; `layouts` and `chart` present the results.
"""
