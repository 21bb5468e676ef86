"""`robustgen compare`: whether two sets of the same images are equivalent.

`comparison` does it all, in this order: `pairing` reads both sets side by side and measures, `equivalence`
has the statistics, `results` what is found out; `layouts` prints it, `page` is the HTML page.
"""
