"""The benchmarks as tables and functions: operations, their constants, and editions."""
