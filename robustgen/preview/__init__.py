"""`robustgen preview`: an image, and the very pixels that make-c or make-p would make of it.

`subject` is which image and what is made of it, `drawing` puts that onto a sheet, `animation` in motion.
"""
