"""Other packages' call signatures, over our functions."""
