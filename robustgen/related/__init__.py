"""The related benchmarks: AugMix, filtration, icons, subtypes, streams, and cleaned sets."""
