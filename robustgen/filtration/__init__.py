"""Adversarial filtration: natural images that fool classifiers, as ImageNet-A and ImageNet-O were chosen.

Hendrycks et al., "Natural Adversarial Examples", CVPR 2021, section 3.1. `crops` cuts what a model sees,
`funnel` decides on arrays, `ensemble` asks the models, `cache` keeps what they said, `rules` are the ways
of A and of O, `filtering` runs it all, `reviewing` writes the page for the human who has the last word, and
`accepting` what comes of that.
"""
