"""The commands of the related benchmarks."""
