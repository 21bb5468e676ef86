"""Orders of corrupted images for test-time adaptation: drawn, written, and read."""
