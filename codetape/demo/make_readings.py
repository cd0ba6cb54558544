"""Makes the sample data, the same to the byte each time.

python -m codetape.demo.make_readings > codetape/demo/readings.csv
"""

from __future__ import annotations

import csv
import math
import random
import sys
from datetime import datetime, timedelta
from typing import TextIO

HOURS = 60
START = datetime(2025, 3, 1)  # noqa: DTZ001 - sensors have no time zone
SENSORS = {  # name: mean in °C, the unit that it reports, hours without a value, hours with a spike
    "boiler-room": (41.0, "F", (7, 8, 9, 44), {30: 14.0, 31: 12.5}),
    "cellar": (11.5, "C", (21,), {50: 9.0}),
    "cold-store": (3.0, "F", (2, 39, 40), {18: 11.0}),
    "greenhouse": (24.0, "C", (13, 14, 15, 16), {26: -13.0, 27: -15.5}),
    "office": (21.0, "C", (), {}),
    "roof": (6.0, "F", (33, 57), {5: 17.5, 41: -12.0, 48: 16.0}),
}


def write(file: TextIO, seed: int = 20250301) -> None:
    """Write the readings of all sensors, hour by hour."""
    chance = random.Random(seed)  # noqa: S311 - it need not be hard to guess
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["timestamp", "sensor", "value", "unit"])
    for hour in range(HOURS):
        moment = (START + timedelta(hours=hour)).isoformat(timespec="minutes")
        for sensor, (_, unit, _, _) in SENSORS.items():
            writer.writerow([moment, sensor, _reading(sensor, hour, chance), unit])


def _reading(sensor: str, hour: int, chance: random.Random) -> str:
    mean, unit, gaps, spikes = SENSORS[sensor]
    day = 1.2 * math.sin(math.tau * (hour - 9) / 24)
    celsius = mean + day + chance.gauss(0, 0.6) + spikes.get(hour, 0.0)
    if hour in gaps:
        return ""
    return f"{celsius * 9 / 5 + 32 if unit == 'F' else celsius:.1f}"


if __name__ == "__main__":
    write(sys.stdout)
