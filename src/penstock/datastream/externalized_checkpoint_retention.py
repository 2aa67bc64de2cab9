"""What becomes of the checkpoints of a job that ends.

A job that finished needs no checkpoint, so its checkpoints are deleted in any case.
"""

from penstock.checkpoint.settings import Retention as ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
