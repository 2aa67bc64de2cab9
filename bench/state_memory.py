"""Memory per key of the hashmap backend, as a ratio to a plain dict of the same keys and values.

Each contender fills itself in a process of its own and says by how much its memory grew. The
backend is measured before its first cut, when it remembers every key as changed; just after it,
before anything is written; and in the quiet between checkpoints.

    python -m bench.state_memory --keys 2000000
"""

import argparse
import gc
import json
import os

import psutil

from bench.common import last_json, result_row, start_module
from penstock.common.typeinfo import Types
from penstock.state.descriptors import ValueStateDescriptor
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext


def resident() -> int:
    gc.collect()
    rss: int = psutil.Process(os.getpid()).memory_info().rss
    return rss


def key(number: int) -> str:
    return f"key-{number:09d}"


def value(number: int) -> str:
    return f"{number:0100d}"


def plain(keys: int) -> dict[str, int]:
    before = resident()
    table = {}
    for number in range(keys):
        table[key(number)] = value(number)
    return {"filled": resident() - before, "length": len(table)}


def hashmap(keys: int) -> dict[str, int]:
    before = resident()
    context = KeyContext()
    backend = HashMapBackend(context, 128)
    state = backend.get_state(ValueStateDescriptor("value", Types.STRING()))
    for number in range(keys):
        context.key = key(number)
        state.update(value(number))
    filled = resident() - before
    captured = backend.cut(1, full=True)
    cut = resident() - before
    backend.confirm(1)
    del captured
    return {"filled": filled, "cut": cut, "settled": resident() - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--contender", choices=("plain", "hashmap"))
    options = parser.parse_args()
    if options.contender:
        contender = plain if options.contender == "plain" else hashmap
        print(json.dumps(contender(options.keys)))
        return
    found = {}
    for name in ("plain", "hashmap"):
        arguments = ("--keys", str(options.keys), "--contender", name)
        found[name] = last_json(start_module("bench.state_memory", *arguments, stdout=-1))
    base = found["plain"]["filled"]
    ratios = {moment: size / base for moment, size in found["hashmap"].items()}
    details = ", ".join(f"{moment} {ratio:.2f} x" for moment, ratio in ratios.items())
    details = f"{options.keys:,} keys, {base / options.keys:.0f} bytes each in a dict; {details}"
    figure = f"{max(ratios.values()):.2f} x a plain dict"
    print(result_row("state_memory", figure, details))


if __name__ == "__main__":
    main()
