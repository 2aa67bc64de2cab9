"""The command line: `penstock run job.py`.

`main` is where it starts, and each command has a module of its own that is imported only when the
command is used.
"""
