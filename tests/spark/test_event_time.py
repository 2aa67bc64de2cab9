"""Event time on real Spark: at any parallelism the answer is that of a plain loop."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing.event_programs import KINDS, EventCase


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_every_kind_of_program(session: object, parallelism: int) -> None:
    for kind in KINDS:
        seed = next(s for s in range(1000) if EventCase.random(s).kind == kind)
        case = replace(EventCase.random(seed), parallelism=parallelism)
        settings = {"pipeline.auto-watermark-interval": "20 ms"}
        configuration = Configuration.from_dict(settings)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        assert Counter(case.build(env).execute_and_collect()) == case.answer(), kind
