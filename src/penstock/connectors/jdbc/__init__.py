"""Databases as sinks: any DB-API driver at least once, PostgreSQL exactly once as well.

The public names are in `penstock.datastream.connectors.jdbc`.
"""
