"""Tools to test Penstock programs, and Penstock itself, without a cluster.

`penstock.testing.simulator` runs a whole job of many slots in one process: one seed decides every
interleaving and every fault, and replays them exactly.
"""
