"""Commands that look at sets: verify, preview, compare, calibrate and report."""
