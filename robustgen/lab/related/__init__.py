"""The related benchmarks: AugMix, filtration, icons, subtypes, streams, and CLAHE for whole sets."""
