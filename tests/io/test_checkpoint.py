import zipfile

import pytest
import torch

from regnet.errors import InputError
from regnet.io import read_checkpoint

HYPER = {"model": {"_target_": "x"}, "spec": {"ndim": 3}, "regnet": "0.1.0"}


def test_a_checkpoint_comes_back(tmp_path):
    torch.save({"state_dict": {"w": torch.ones(2)}, "hyper_parameters": HYPER}, tmp_path / "a.ckpt")
    content = read_checkpoint(tmp_path / "a.ckpt")
    assert torch.equal(content["state_dict"]["w"], torch.ones(2))
    assert content["hyper_parameters"] == HYPER


@pytest.mark.parametrize(
    "content",
    [{"w": torch.ones(2)}, [1, 2], {"state_dict": {}, "hyper_parameters": {}}, {"hyper_parameters": HYPER}],
)
def test_weights_of_another_kind_are_refused(tmp_path, content):
    torch.save(content, tmp_path / "a.ckpt")
    with pytest.raises(InputError, match=r"a\.ckpt: not a regnet checkpoint"):
        read_checkpoint(tmp_path / "a.ckpt")


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("code in a checkpoint was run",))


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    torch.save({"state_dict": {}, "hyper_parameters": {**HYPER, "trap": Trap()}}, tmp_path / "a.ckpt")
    with pytest.raises(InputError, match="not a regnet checkpoint"):
        read_checkpoint(tmp_path / "a.ckpt")


def test_a_missing_damaged_or_foreign_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such checkpoint"):
        read_checkpoint(tmp_path / "none.ckpt")
    (tmp_path / "text.ckpt").write_text("hello")
    torch.save({"state_dict": {"w": torch.ones(999)}, "hyper_parameters": HYPER}, tmp_path / "a.ckpt")
    (tmp_path / "cut.ckpt").write_bytes((tmp_path / "a.ckpt").read_bytes()[:-300])
    for name in ("text.ckpt", "cut.ckpt"):
        with pytest.raises(InputError, match="not a regnet checkpoint"):
            read_checkpoint(tmp_path / name)


@pytest.mark.parametrize("pickled", [b"", b"\x80\x02.", b"\x80\x02R.", b"\x80\x02]a.", b"\xff"])
def test_a_pickle_of_any_nonsense_is_refused(tmp_path, pickled):
    with zipfile.ZipFile(tmp_path / "a.ckpt", "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3")
    with pytest.raises(InputError, match=r"a\.ckpt: not a regnet checkpoint"):
        read_checkpoint(tmp_path / "a.ckpt")
