"""`robustgen preview`: an image, and the exact pixels that make-c or make-p would create from it.

`previewed` provides the image and its outputs, `drawing` puts them on a sheet, `animation` animates them.
"""
