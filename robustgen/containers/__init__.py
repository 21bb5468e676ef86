"""Containers of many files, rows or arrays, on file objects: they know no paths and no policy."""
