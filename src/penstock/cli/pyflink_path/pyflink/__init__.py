"""Stands in for PyFlink under `--pyflink`: its modules are Penstock's of the same name.

The folder above is put on the module search path, which slots on the driver's machine take over,
so that modules they import may import pyflink too.
"""

from penstock.cli.pyflink_hook import install

install()
