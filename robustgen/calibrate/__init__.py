"""`robustgen calibrate`: how strong corruptions are, and constants for other image sizes.

`strengths` measures; `families` says how constants may be changed, `matching` looks for those that fit
another size; `layouts` and `chart` show both.
"""
