"""The kinds of metrics, and the groups that they are registered in.

Changing a metric costs an addition. Everything else is done when it is read, in the thread that
runs the user's functions, so that neither needs a lock.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, TypeVar

from penstock.common.metrics import DistributionValue, MeterValue
from penstock.errors import ProgramError

log = logging.getLogger(__name__)


class Metric(ABC):
    """Something that is measured."""

    def begin(self, now_ms: int) -> None:
        """The first record may come now."""

    @abstractmethod
    def read(self, now_ms: int) -> Any:
        """Its value now; None: there is none."""


class Counter(Metric):
    """Counts up and down."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Count `n` more."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Count `n` less."""
        self._count -= n

    def get_count(self) -> int:
        """The count so far."""
        return self._count

    def read(self, now_ms: int) -> int:
        """The count so far."""
        return self._count


class Meter(Metric):
    """Counts events, and tells how many there were per second in the last `time_span`."""

    def __init__(self, time_span_in_seconds: int = 60) -> None:
        self._span_ms = time_span_in_seconds * 1000
        self._count = 0
        self._samples: deque[tuple[int, int]] = deque()

    def mark_event(self, value: int = 1) -> None:
        """`value` events happened."""
        self._count += value

    def get_count(self) -> int:
        """All events so far."""
        return self._count

    def begin(self, now_ms: int) -> None:
        """Rates are measured from here on."""
        self._samples.append((now_ms, self._count))

    def read(self, now_ms: int) -> MeterValue:
        """The count, and the rate since the oldest reading that is within the time span."""
        samples = self._samples
        samples.append((now_ms, self._count))
        while now_ms - samples[0][0] > self._span_ms and len(samples) > 2:
            samples.popleft()
        since_ms, before = samples[0]
        passed_ms = now_ms - since_ms
        rate = (self._count - before) * 1000 / passed_ms if passed_ms > 0 else 0.0
        return MeterValue(self._count, rate)


class Distribution(Metric):
    """Tells how the values lie that it is given."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0
        self._min = 0.0
        self._max = 0.0

    def update(self, value: float) -> None:
        """Take one more value in."""
        if self._count == 0:
            self._min = self._max = value
        elif value < self._min:
            self._min = value
        elif value > self._max:
            self._max = value
        self._count += 1
        self._sum += value

    def read(self, now_ms: int) -> DistributionValue:
        """Number, sum, least and greatest of all values so far."""
        if self._count == 0:
            return DistributionValue(0, None, None, None)
        return DistributionValue(self._count, self._sum, self._min, self._max)


class _Gauge(Metric):
    """Asks a function of the user's."""

    def __init__(self, name: str, function: Callable[[], Any]) -> None:
        self._name = name
        self._function = function
        self._warned = False

    def read(self, now_ms: int) -> Any:
        # Whatever a gauge does wrong, the job matters more than the gauge.
        try:
            return _plain(self._function())
        except Exception as error:
            if not self._warned:
                self._warned = True
                log.warning(
                    "gauge %r has no value: %s: %s", self._name, type(error).__name__, error
                )
            return None


M = TypeVar("M", bound=Metric)


class MetricGroup:
    """Registers metrics under names, in groups within groups."""

    def __init__(
        self, scope: tuple[str, ...] = (), registered: dict[str, Metric] | None = None
    ) -> None:
        self._scope = scope
        self._registered: dict[str, Metric] = {} if registered is None else registered

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group in this group; with `extra`, the group `extra` in the group `name`."""
        below = (name,) if extra is None else (name, extra)
        return MetricGroup(self._scope + below, self._registered)

    def counter(self, name: str) -> Counter:
        """The counter of this name, registered if it is new."""
        return self._register(name, Counter())

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Register a function that is asked for the value: a number, a bool or a str.

        It is called between two records, in the thread of the function that registered it.
        """
        if not callable(obj):
            raise ProgramError(f"gauge {name!r} needs a function, not a {type(obj).__name__}")
        full = self._name(name)
        self._check(full, _Gauge)
        self._registered[full] = _Gauge(full, obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """The meter of this name, registered if it is new."""
        return self._register(name, Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """The distribution of this name, registered if it is new."""
        return self._register(name, Distribution())

    def begin(self, now_ms: int) -> None:
        """The first record may come now."""
        for metric in self._registered.values():
            metric.begin(now_ms)

    def read(self, now_ms: int) -> Iterator[tuple[str, Any]]:
        """Every metric of this group and of those above and below it that has a value now."""
        for name, metric in list(self._registered.items()):
            value = metric.read(now_ms)
            if value is not None:
                yield name, value

    def has_metrics(self) -> bool:
        """Whether anything was registered yet; another thread may ask."""
        return bool(self._registered)

    def _register(self, name: str, metric: M) -> M:
        full = self._name(name)
        self._check(full, type(metric))
        return self._registered.setdefault(full, metric)  # type: ignore[return-value]

    def _check(self, full: str, kind: type[Metric]) -> None:
        known = self._registered.get(full)
        if known is not None and type(known) is not kind:
            raise ProgramError(
                f"metric {full!r} is registered twice: as {_kind(type(known))} and as {_kind(kind)}"
            )

    def _name(self, name: str) -> str:
        return ".".join((*self._scope, name))


def _kind(kind: type[Metric]) -> str:
    return kind.__name__.lstrip("_").lower()


def _plain(value: Any) -> bool | int | float | str:
    """A gauge's value as a type that every process knows; other libraries have their own."""
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"it returned a {type(value).__name__}, not a number, a bool or a str")
