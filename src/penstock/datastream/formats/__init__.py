"""Formats, by PyFlink's names: none yet; importing one says what to use instead."""
