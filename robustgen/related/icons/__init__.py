"""Sets of icons as in Icons-50, for style robustness: emoji by class and style.

Source: Hendrycks and Dietterich, "Benchmarks for Neural Network Robustness to Common Distortions and
Styles", 2018, section 5 and appendix C.
"""
