"""Every model, saved and loaded by another process without Hydra, gives the same field bit for bit."""

import subprocess
import sys
from pathlib import Path

import torch

from regnet.data.spec import InputSpec
from regnet.models import build, describe
from tests.models.configured import NAMES, configured

READER = """
import sys
import torch
from regnet.inference import load_model

torch.set_num_threads(1)
folder = sys.argv[1]
for name in sys.argv[2:]:
    with torch.inference_mode():
        outputs = load_model(f"{folder}/{name}.ckpt").model(*torch.load(f"{folder}/images.pt"))
    torch.save(outputs["displacement"].clone(), f"{folder}/{name}.pt")
print(*sys.modules)
"""


def test_a_fresh_process_gives_the_same_field_bit_for_bit(tmp_path: Path) -> None:
    images = torch.rand(2, 1, 1, 27, 22)
    torch.save(tuple(images), tmp_path / "images.pt")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    fields = {}
    for name in NAMES:
        config = describe(configured(name, 2))
        model = build(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
            fields[name] = model(*images)["displacement"]
        about = {"model": config, "spec": InputSpec(ndim=2).to_dict(), "regnet": "0.1.0"}
        weights = {f"model.{key}": value for key, value in model.state_dict().items()}
        torch.save({"state_dict": weights, "hyper_parameters": about}, tmp_path / f"{name}.ckpt")
    torch.set_num_threads(threads)
    words = [sys.executable, "-c", READER, str(tmp_path), *NAMES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not {"hydra", "omegaconf", "lightning"} & set(done.stdout.split())
    for name, field in fields.items():
        assert field.abs().max() > 1e-3, name
        assert torch.equal(torch.load(tmp_path / f"{name}.pt"), field), name
