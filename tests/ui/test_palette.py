"""The five colours of origins stay apart for colour-blind readers, in light and dark.

Vision is simulated after Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB;
differences are CIEDE2000, contrasts WCAG 2.
"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

CSS = Path(__file__).parents[2] / "assets" / "css" / "alignment.css"
ORIGINS = ("prefill", "accepted", "bonus", "corrected", "plain")
BACKGROUND = {"light": "#ffffff", "dark": "#1b1d20"}
APART = 11.0  # about five times what is just noticeable side by side
VISIBLE = 3.0  # WCAG 2.2, 1.4.11
VISIONS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def colours(theme: str) -> dict[str, str]:
    block = re.search(
        r":root \{(.*?)\}" if theme == "light" else r"\.dark \{(.*?)\}", CSS.read_text(), re.DOTALL
    )
    assert block
    return {name: re.search(rf"--uag-o-{name}: (#[0-9a-f]{{6}});", block[1])[1] for name in ORIGINS}


def linear(colour: str) -> list[float]:
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def seen(colour: str, vision: str) -> list[float]:
    rgb = linear(colour)
    rows = VISIONS[vision]
    return [min(1.0, max(0.0, sum(a * b for a, b in zip(row, rgb, strict=True)))) for row in rows]


def lab(rgb: list[float]) -> tuple[float, float, float]:
    rows = (
        (0.4124564, 0.3575761, 0.1804375, 0.95047),
        (0.2126729, 0.7151522, 0.0721750, 1.0),
        (0.0193339, 0.1191920, 0.9503041, 1.08883),
    )
    ratios = [(r * rgb[0] + g * rgb[1] + b * rgb[2]) / white for r, g, b, white in rows]
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """CIEDE2000, after Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    middle = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * math.sqrt(middle**7 / (middle**7 + 25**7))
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180
    hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    h = (h1 + turn / 2) % 360

    def cos(degrees: float) -> float:
        return math.cos(math.radians(degrees))

    t = 1 - 0.17 * cos(h - 30) + 0.24 * cos(2 * h) + 0.32 * cos(3 * h + 6) - 0.2 * cos(4 * h - 63)
    sl = 1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    sc, sh = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    bend = 60 * math.exp(-(((h - 275) / 25) ** 2))
    twist = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(bend))
    dl, dc, dh = (l2 - l1) / sl, (c2 - c1) / sc, hue / sh
    return math.sqrt(dl**2 + dc**2 + dh**2 + twist * dc * dh)


def contrast(one: str, other: str) -> float:
    light = [
        sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear(c), strict=True))
        for c in (one, other)
    ]
    return (max(light) + 0.05) / (min(light) + 0.05)


def test_the_difference_is_that_of_the_paper() -> None:
    assert difference((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert difference((50, 2.5, 0), (73, 25, -18)) == pytest.approx(27.1492, abs=1e-4)


@pytest.mark.parametrize("theme", BACKGROUND)
@pytest.mark.parametrize("vision", VISIONS)
def test_origins_are_told_apart(theme, vision) -> None:
    shown = {name: lab(seen(colour, vision)) for name, colour in colours(theme).items()}
    for one, other in itertools.combinations(ORIGINS, 2):
        assert difference(shown[one], shown[other]) >= APART, f"{one} and {other}"


@pytest.mark.parametrize("theme", BACKGROUND)
@pytest.mark.parametrize("name", ORIGINS)
def test_origins_stand_out_from_the_background(theme, name) -> None:
    assert contrast(colours(theme)[name], BACKGROUND[theme]) >= VISIBLE
