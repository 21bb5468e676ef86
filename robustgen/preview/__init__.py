"""`robustgen preview`: what make-c and make-p make of one image."""
