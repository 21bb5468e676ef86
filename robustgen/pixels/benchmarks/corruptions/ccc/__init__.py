"""The corruptions of CCC, Continuously Changing Corruptions: severities 0 to 5, in quarters.

Definitions: Press, Schneider, Kuemmerer and Bethge 2023, as the published generation code computes them. They
are those of ImageNet-C with constants interpolated linearly between severities; severity 0 changes nothing.
`robustgen.lab.related.streams.ccc` creates sequences of pairs of them.
"""

from robustgen.pixels.benchmarks.corruptions.ccc import blur, digital, noise, weather
from robustgen.pixels.benchmarks.corruptions.ccc.family import CCC as FAMILY

__all__ = ["FAMILY", "blur", "digital", "noise", "weather"]
