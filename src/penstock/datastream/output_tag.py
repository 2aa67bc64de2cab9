"""Side outputs, by PyFlink's names."""

from penstock.common.output_tag import OutputTag

__all__ = ["OutputTag"]
