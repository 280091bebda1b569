"""``regnet doctor`` finds nothing wrong here, and names what is wrong elsewhere."""

from types import SimpleNamespace

import pytest
import torch

from regnet.cli import checks
from regnet.cli.checks import Finding

from .command import regnet


def only(found: object) -> Finding:
    (finding,) = found  # type: ignore[misc]
    return finding


def test_a_whole_installation_has_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert regnet("doctor") == 0
    assert "fault" not in capsys.readouterr().out


def test_a_missing_core_is_a_fault_with_its_cure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> str:
        raise RuntimeError("the compiled part is missing")

    monkeypatch.setattr(checks, "isa", missing)
    assert regnet("doctor") == 1
    text = capsys.readouterr().out
    assert "fault" in text and "C++17" in text


def test_wrong_values_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "ops", SimpleNamespace(warp=lambda image, flow, bound: image * 1))
    assert [finding.kind for finding in checks.core()] == ["good", "fault"]


def test_too_few_and_too_many_threads_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert "unset OMP_NUM_THREADS" in only(checks.threads()).cure
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    assert only(checks.threads()).cure == "export OMP_NUM_THREADS=8"


def test_a_driver_that_torch_does_not_use_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert only(checks.graphics()).cure == "install a torch with CUDA"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert "newer driver" in only(checks.graphics()).cure


def test_an_extra_that_is_missing_says_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    (finding,) = [finding for finding in checks.packages() if finding.what == "wandb"]
    assert (finding.kind, finding.cure) == ("note", "pip install 'regnet[wandb]'")


def test_full_disks_and_small_shared_memory_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda place: SimpleNamespace(free=64 * 2**20))
    assert [finding.kind for finding in checks.files()] == ["good", "note", "note"]
    assert {finding.kind for finding in checks.shared_memory()} <= {"note"}
