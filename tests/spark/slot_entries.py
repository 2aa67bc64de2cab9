"""What the slots of these tests run. A module of its own, because slots import it by name."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path


def report(slot: int, host: str, payload: bytes) -> None:
    """Leave a file in the folder named by the payload, then return."""
    report = {
        "pid": os.getpid(),
        "host": host,
        "threads": [thread.name for thread in threading.enumerate()],
    }
    folder = Path(payload.decode())
    draft = folder / f".{slot}"
    draft.write_text(json.dumps(report))
    draft.rename(folder / f"slot-{slot}")


def stay(slot: int, host: str, payload: bytes) -> None:
    """Report, then run until killed."""
    report(slot, host, payload)
    time.sleep(3600)


def fail_in_slot_1(slot: int, host: str, payload: bytes) -> None:
    """Report, then raise in slot 1; the others run until killed."""
    report(slot, host, payload)
    if slot == 1:
        raise ValueError("bad record\non two lines")
    time.sleep(3600)
