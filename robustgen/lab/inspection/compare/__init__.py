"""`robustgen compare`: a test of whether two sets of the same images are equivalent.

`comparison` runs it: `pairing` reads both sets side by side and measures, `equivalence` contains the
statistics, `results` the results; `layouts` prints them, `page` writes the HTML page.
"""
