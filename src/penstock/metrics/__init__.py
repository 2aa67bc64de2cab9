"""Metrics of user functions, by PyFlink's names.

A function registers them in `open` and changes them as it goes; `JobClient.metrics()` reads them.

>>> group = MetricGroup()
>>> rejected = group.add_group("rules").counter("rejected")
>>> rejected.inc()
>>> rejected.get_count()
1
"""

from penstock.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
