"""Rules on the side: a small stream of rules goes to every subtask and judges the payments.

A rule is a limit per merchant. Rules are added, changed and removed while the job runs, and
survive a restart, because they are in broadcast state. Run it with
`python examples/rules_on_the_side.py`; it ends by itself.
"""

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
MERCHANTS = ("tea house", "bakery", "book shop")
# One per half second: a limit for a merchant, another one, and none again.
CHANGES = [("tea house", 500), ("bakery", 300), ("tea house", 800), ("bakery", None)]


def payment(number: int) -> tuple[str, int]:
    return MERCHANTS[number % 3], 100 + 37 * number % 900


class Judge(KeyedBroadcastProcessFunction):
    def open(self, ctx):
        self.refused = ctx.get_state(ValueStateDescriptor("refused", Types.LONG()))

    def process_broadcast_element(self, value, ctx):
        merchant, limit = value
        rules = ctx.get_broadcast_state(RULES)
        if limit is None:
            rules.remove(merchant)
        else:
            rules.put(merchant, limit)

    def process_element(self, value, ctx):
        merchant, amount = value
        limit = ctx.get_broadcast_state(RULES).get(merchant)
        if limit is not None and amount > limit:
            refused = (self.refused.value() or 0) + 1
            self.refused.update(refused)
            yield f"{merchant}: {amount} is above {limit} (refused so far: {refused})"


def refusals(payments, changes):
    rules = changes.broadcast(RULES)
    return payments.key_by(lambda p: p[0]).connect(rules).process(Judge(), Types.STRING())


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(1000)
    none = WatermarkStrategy.no_watermarks()
    changes = DataGeneratorSource(lambda n: CHANGES[n], count=len(CHANGES), rate_per_second=2)
    rules = env.from_source(changes, none, "rules").set_parallelism(1)
    source = DataGeneratorSource(payment, count=600, rate_per_second=200)
    payments = env.from_source(source, none, "payments")
    refusals(payments, rules).print()
    env.execute("rules on the side")


if __name__ == "__main__":
    main()
