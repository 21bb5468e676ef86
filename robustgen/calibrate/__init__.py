"""`robustgen calibrate`: how strong corruptions are, and constants for other sizes."""
