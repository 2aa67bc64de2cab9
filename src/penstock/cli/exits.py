"""What the exit code says."""

EXIT_FAILED = 1
"""The program or its job failed."""

EXIT_USAGE = 2
"""The command line or the configuration is wrong; nothing was started."""

EXIT_INTERRUPTED = 130
"""Ctrl-C; what shells use for it."""
