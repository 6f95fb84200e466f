"""Numbers as tables hold them."""

import math


def number(value: float) -> str:
    """Returns six digits; - for nothing."""
    return "-" if math.isnan(value) else f"{value:.6g}"
