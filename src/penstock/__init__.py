"""Penstock: a stateful stream processor for Python with Flink's model, on Spark.

The two public fronts are `penstock.common` and `penstock.datastream`, with PyFlink's names.
"""

__version__ = "0.1.0"
