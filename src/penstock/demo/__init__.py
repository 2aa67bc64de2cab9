"""The demo: UPI payments per merchant and minute by when they happened, and a slot killed half-way.

    python -m penstock.demo

It runs on local Spark, shows the minutes as they become final and the records that came too late,
kills one of its own slots with kill -9, recovers from the last checkpoint, draws a picture of the
result, and ends by itself. Every count is then compared with the one that a plain loop gives.
"""
