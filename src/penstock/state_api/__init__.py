"""State as tables: savepoints and checkpoints read as DataFrames, and savepoints written from them.

    reader = SavepointReader("/data/savepoints/savepoint-3f9a01-0c52d7e1b6aa")
    counts = reader.state("counts", "count")         # a DataFrame: key, value

    repaired = counts.where("value >= 0")
    writer = SavepointWriter.from_existing_savepoint(reader.path)
    writer.with_keyed_state("counts", ValueStateDescriptor("count", Types.LONG()), repaired)
    path = writer.write("/data/savepoints")          # penstock run -s PATH job.py

The state is read and written by tasks on Spark's executors; the driver sees manifests only.
"""

from penstock.inspection.catalog import OperatorInfo, StateInfo
from penstock.state_api.reader import SavepointReader
from penstock.state_api.writer import SavepointWriter

__all__ = ["OperatorInfo", "SavepointReader", "SavepointWriter", "StateInfo"]
