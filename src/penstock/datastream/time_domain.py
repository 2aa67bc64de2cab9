"""Time domains, by PyFlink's names."""

from penstock.runtime.functions import TimeDomain

__all__ = ["TimeDomain"]
