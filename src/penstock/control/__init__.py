"""A running driver, reached from another terminal of the same user on the same machine.

The driver is the JobManager, so whoever wants to stop a job has to talk to its driver. Each one
serves a small endpoint on the loopback interface and writes where, with a token, into a file that
only its user can read (`penstock.control.drivers`). `penstock.control.server` is the driver's end,
`penstock.control.client` the other one.
"""
