"""`robustgen compare`: whether two sets of the same images are equivalent."""
