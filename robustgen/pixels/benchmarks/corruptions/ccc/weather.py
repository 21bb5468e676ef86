"""Weather of CCC."""

from robustgen.pixels.benchmarks.corruptions import weather as common
from robustgen.pixels.benchmarks.corruptions.ccc.family import varying
from robustgen.pixels.benchmarks.corruptions.weather import FROST, Brightness, Fog, Frost, Snow
from robustgen.pixels.imaging.snow import luma_of

varying(
    "weather",
    Snow,
    (0.1, 0.3, 3, 1, 10, 4, 1),
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    shares=luma_of,
)(common.snow)

varying(
    "weather",
    Frost,
    *((1, 0), (1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    needs=FROST,
)(common.frost)

varying("weather", Fog, (0, 2), (1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4))(common.fog)

varying("weather", Brightness, 0, 0.1, 0.2, 0.3, 0.4, 0.5, random=False, common=False)(common.brightness)
