"""The orders in which test-time adaptation meets corrupted images: drawn, written down, and read again."""
