"""Fraud counter: more than ten payments of one card within a minute of the first trip an alarm.

Two values per card, a count and a flag, and a timer that clears both sixty seconds after the
first payment. Run it with `python examples/fraud_counter.py`; it ends by itself.
"""

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.state import ValueStateDescriptor

LIMIT = 10
WINDOW_MS = 60_000


def payment(number: int) -> dict:
    """Payment `number`: card 0 pays far more often than the other forty."""
    card = 0 if number % 3 == 0 else 1 + number % 40
    return {"card": f"card-{card:02}", "paise": 100 + number % 900, "ts_ms": number * 500}


EVENT_TIME = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_seconds(5)
).with_timestamp_assigner(lambda payment, record_timestamp: payment["ts_ms"])


class FraudCounter(KeyedProcessFunction):
    def open(self, ctx: RuntimeContext):
        self.count = ctx.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.tripped = ctx.get_state(ValueStateDescriptor("tripped", Types.BOOLEAN()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count == 1:
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + WINDOW_MS)
        if count > LIMIT and not self.tripped.value():
            self.tripped.update(True)
            yield f"{ctx.get_current_key()}: more than {LIMIT} payments within a minute"

    def on_timer(self, timestamp, ctx):
        self.count.clear()
        self.tripped.clear()


def alarms(payments):
    return payments.key_by(lambda p: p["card"]).process(FraudCounter(), Types.STRING())


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(1000)
    source = DataGeneratorSource(payment, count=300, rate_per_second=300)
    payments = env.from_source(source, EVENT_TIME, "payments")
    alarms(payments).print("alarm")
    env.execute("fraud counter")


if __name__ == "__main__":
    main()
