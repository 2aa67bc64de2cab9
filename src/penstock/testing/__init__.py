"""Tools to test Penstock programs, and Penstock itself, without a cluster.

`penstock.testing.simulator` runs a whole job of many slots in one process: one seed decides every
interleaving and every fault, and replays them exactly. `scenarios` lets the seed decide the
program and its settings too: `programs` grows it from `stages`, with a model of what must come
out. `spark_cluster` starts a real cluster to kill.
"""
