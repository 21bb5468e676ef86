"""Containers of many files, rows or arrays; they work on file objects, independent of paths and policy."""
