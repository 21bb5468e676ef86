"""Images to images: knows no user, no set and no model.

imaging     arrays, decoding, geometry, the compiled loops, and one module for each subject
benchmarks  corruptions, perturbations, their constants and editions
"""
