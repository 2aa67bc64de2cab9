"""Running average over a socket: a line `key number` gives the average of the key so far.

In one terminal `nc -lk 9000`, in another `python examples/running_average.py`. Averages survive
the loss of the job's processes: they are in the checkpoints. The socket itself cannot be asked to
send again, so lines that came after the last checkpoint are lost with them (at most once).
"""

import sys

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor


def parse(line: str):
    """`key number` as a pair; lines that are something else are left out."""
    key, _, number = line.strip().partition(" ")
    try:
        return [(key, float(number))]
    except ValueError:
        return []


class RunningAverage(KeyedProcessFunction):
    def open(self, ctx):
        self.count = ctx.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.total = ctx.get_state(ValueStateDescriptor("total", Types.DOUBLE()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        total = (self.total.value() or 0.0) + value[1]
        self.count.update(count)
        self.total.update(total)
        yield f"{ctx.get_current_key()}: {total / count:g} after {count}"


def main(host: str = "localhost", port: str = "9000") -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(500)
    # The server may be gone for a while when the job comes back.
    lines = env.socket_text_stream(host, int(port), max_retry=3)
    pairs = lines.flat_map(parse, Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    pairs.key_by(lambda pair: pair[0]).process(RunningAverage(), Types.STRING()).print()
    env.execute("running average")


if __name__ == "__main__":
    main(*sys.argv[1:])
