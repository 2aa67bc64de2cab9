"""Where Penstock was tried: a user elsewhere hears it before anything can go wrong.

Windows is refused when the package is imported.
"""

from __future__ import annotations

import functools
import logging
import sys

log = logging.getLogger(__name__)


@functools.cache
def say_where_it_was_tried(platform: str = sys.platform) -> None:
    """Warn once on a system that no test runs on."""
    if platform == "linux":
        return
    log.warning(
        "Penstock is tested on Linux; on %s it is meant to work and was not tried: tell us "
        "what you meet, and use Linux for work that counts",
        "macOS" if platform == "darwin" else platform,
    )
