"""The records that every benchmark uses: small payments, keyed by merchant.

The throughput benchmarks read them from JSON-lines files, made once from a seed and kept in
the cache folder. The latency benchmarks make them one at a time, each with its time of birth.

>>> import json
>>> json.loads(birth_line(3))["merchant"]
'm-0003'
"""

import functools
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDS = 1_000_000
KEYS = 1_000
SEED = 20_240_817

# A text file is one split, so one file could be read by one subtask only. Eight parts let two
# readers share the work evenly; the tight loop reads the same eight, one after the other.
PARTS = 8


def cache_folder() -> Path:
    """Where generated data is kept between runs."""
    folder = Path(os.environ.get("PENSTOCK_BENCH_CACHE", tempfile.gettempdir()))
    return folder / "penstock-bench"


def payments(records: int = RECORDS, keys: int = KEYS) -> Path:
    """A folder of JSON-lines files that hold `records` payments to `keys` merchants."""
    make = functools.partial(_payment, keys=keys)
    return _made(f"payments-{records}-{keys}-{SEED}", records, make)


def _made(name: str, records: int, make: Callable[[random.Random, int], dict[str, Any]]) -> Path:
    folder = cache_folder() / name
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        _write(unfinished, records, make)
        try:
            unfinished.rename(folder)
        except OSError:  # another process was first: its files are the same
            shutil.rmtree(unfinished)
    return folder


def upi_payments(records: int = RECORDS) -> Path:
    """The same with event time: 6 ms apart, up to two seconds out of order."""
    return _made(f"upi-{records}-{KEYS}-{SEED}", records, _upi_payment)


def parts(folder: Path) -> list[Path]:
    """The data files of `folder`, in order."""
    return sorted(folder.glob("part-*.jsonl"))


def birth_line(number: int) -> str:
    """Payment `number` as a JSON line, with the time it was made in `birth` (nanoseconds)."""
    return json.dumps(
        {
            "id": number,
            "merchant": f"m-{number % KEYS:04}",
            "amount": 100 + number % 9_900,
            "birth": time.time_ns(),
        }
    )


def _write(
    folder: Path, records: int, make: Callable[[random.Random, int], dict[str, Any]]
) -> None:
    rng = random.Random(SEED)
    for part in range(PARTS):
        first, last = records * part // PARTS, records * (part + 1) // PARTS
        with (folder / f"part-{part}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(first, last):
                file.write(json.dumps(make(rng, number)) + "\n")


def _payment(rng: random.Random, number: int, keys: int) -> dict[str, Any]:
    return {
        "id": number,
        "merchant": f"m-{rng.randrange(keys):04}",
        "payer": f"u-{rng.randrange(1_000_000):06}",
        "amount": rng.randrange(100, 10_000),
        "at": 1_700_000_000_000 + number,
    }


def _upi_payment(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "merchant": f"m-{rng.randrange(KEYS):04}",
        "payer": f"u-{rng.randrange(1_000_000):06}",
        "amount": rng.randrange(100, 10_000),
        "ts_ms": 1_700_000_000_000 + 6 * number - rng.randrange(2_000),
    }
