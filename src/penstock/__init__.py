"""Penstock: a stateful stream processor for Python with Flink's model, on Spark.

The two public fronts are `penstock.common` and `penstock.datastream`, with PyFlink's names.
"""

from penstock import absent

__version__ = "0.1.0"

absent.install()
