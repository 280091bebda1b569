"""Fixed random numbers, as many threads after a test as before; the full product of cases left out unless it is asked
for; torch's own warnings no errors."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def threads_restored() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def pytest_configure(config: pytest.Config) -> None:
    # torch's own forward mode scripts its decompositions at first use
    config.addinivalue_line("filterwarnings", "ignore:.torch.jit.script. is deprecated:DeprecationWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unasked = [] if "exhaustive" in config.option.markexpr else ["exhaustive"]
    unasked += [] if torch.cuda.is_available() else ["cuda"]
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in unasked)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
