"""Adversarial filtration: natural images that fool classifiers, as in ImageNet-A and ImageNet-O.

Hendrycks et al., "Natural Adversarial Examples", CVPR 2021, section 3.1. `ensemble` crops the images and
runs the models, `funnel` decides on arrays, `rules` contains the rules of A and O, `filtering` stores the
predictions and runs it all, and `reviewing` writes the page for human review.
"""
