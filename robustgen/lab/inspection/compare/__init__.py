"""`robustgen compare`: a test of whether two sets of the same images are equivalent.

`comparison` runs it: `results` reads both sets side by side, measures and contains the results, `equivalence`
contains the statistics, `report` prints the results and writes the HTML page.
"""
