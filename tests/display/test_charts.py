"""Charts: their round ticks."""

import pytest

from robustgen.display.charts import choose_ticks


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (51.5, 120, ["60", "80", "100", "120"]),
        (0.0239, 0.662, ["0.2", "0.4", "0.6"]),
        (-0.165, 0.183, ["-0.1", "0.0", "0.1"]),
        (96, 104, ["96", "98", "100", "102", "104"]),
        (0.9991, 0.9998, ["0.9992", "0.9994", "0.9996", "0.9998"]),
        (1000, 30000, ["10000", "20000", "30000"]),
    ],
)
def test_ticks_are_round(low, high, labels):
    ticks = choose_ticks(low, high)
    assert [label for _, label in ticks] == labels
    assert [value for value, _ in ticks] == pytest.approx([float(label) for label in labels])


def test_there_are_two_to_five_ticks():
    for places in range(-6, 7):
        for share in range(10, 100):
            for low in (0, 0.37, -0.5, 12.3):
                ticks = choose_ticks(low, low + share * 10.0**places)
                assert 2 <= len(ticks) <= 5
