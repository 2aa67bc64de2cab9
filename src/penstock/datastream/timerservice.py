"""Timers, by PyFlink's names."""

from penstock.runtime.functions import TimerService

__all__ = ["TimerService"]
