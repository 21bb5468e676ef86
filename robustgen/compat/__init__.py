"""Other packages' call signatures, implemented with robustgen's functions."""
