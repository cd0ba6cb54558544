"""Words and figures as commands say them."""

from __future__ import annotations


def one_line(text: str, longest: int = 200) -> str:
    """Return a text as one line of at most `longest` characters."""
    line = " ".join(text[: 20 * longest].split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def counted(number: int, word: str, words: str = "") -> str:
    """Return "1 event" or "2 events"."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def duration(seconds: float | None) -> str:
    """Return a time as people say it: 0.42 s, 12 s, 3 min 20 s; empty if unknown or next to nothing."""
    if seconds is None or seconds < 0.005:
        return ""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def money(usd: float | None) -> str:
    """Return US dollars; None is unknown, which is not 0."""
    if usd is None:
        return "unknown"
    return f"${usd:.4f}" if usd else "$0"


def listed(names: tuple[str, ...] | list[str], none: str = "none") -> str:
    """Return names with commas between them."""
    return ", ".join(names) or none
