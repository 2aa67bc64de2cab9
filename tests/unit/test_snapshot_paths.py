"""What a path names: a savepoint, or a retained checkpoint by its number."""

from __future__ import annotations

import pytest

from penstock.checkpoint.metadata import CheckpointMetadata, encode_metadata
from penstock.checkpoint.savepoints import open_snapshot


@pytest.mark.parametrize(
    ("folder", "checkpoint"),
    [
        ("job/chk-7", 7),
        ("savepoint-1", None),
        ("2026", None),
        ("chk-final", None),
    ],
)
@pytest.mark.parametrize("end", ["", "/", "/_metadata"])
def test_only_chk_and_a_number_is_a_retained_checkpoint(tmp_path, folder, checkpoint, end):
    (tmp_path / folder).mkdir(parents=True)
    metadata = encode_metadata(CheckpointMetadata("job", 7, 1, 0, {}, {}, {}))
    (tmp_path / folder / "_metadata").write_bytes(metadata)
    snapshot = open_snapshot(f"{tmp_path / folder}{end}")
    assert snapshot.checkpoint == checkpoint
    assert snapshot.path == str(tmp_path / folder)
    store = tmp_path / folder if checkpoint is None else (tmp_path / folder).parent
    assert f"{snapshot.store.directory}/{snapshot.store.job_id}" == str(store)
