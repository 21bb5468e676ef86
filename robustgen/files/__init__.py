"""Bytes: stores of files, containers, and the small formats that several rooms read."""
