"""Measurements of Penstock, as ratios to something else measured in the same run.

Run one from the root of the repository, for example `python -m bench.keyed_count`.
"""
