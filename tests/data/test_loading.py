import pytest
import torch

from regnet.data.loading import EpochSampler, collate


def test_the_sampler_tells_the_epoch_and_its_order_depends_on_seed_and_epoch():
    def order(seed, epoch):
        sampler = EpochSampler(range(20), seed=seed)
        sampler.set_epoch(epoch)
        keys = list(sampler)
        assert {key[0] for key in keys} == {epoch}
        indices = [key[1] for key in keys]
        assert sorted(indices) == list(range(20))
        return indices

    assert order(0, 3) == order(0, 3)
    assert order(0, 3) != order(0, 4)
    assert order(0, 3) != order(1, 3)


def test_without_shuffling_the_order_is_the_datasets():
    assert [index for _, index in EpochSampler(range(5), shuffle=False)] == [0, 1, 2, 3, 4]


def test_processes_share_an_epoch():
    parts = [{index for _, index in EpochSampler(range(8), replicas=2, rank=rank)} for rank in (0, 1)]
    assert parts[0] | parts[1] == set(range(8)) and not parts[0] & parts[1]


@pytest.mark.parametrize("shapes", [((3, 4), (5, 2)), ((3, 4, 6), (5, 2, 6), (1, 7, 2))])
def test_smaller_items_are_padded_and_out_of_view_there(shapes):
    samples = [
        {
            "moving": torch.ones(2, *s),
            "view": torch.ones(1, *s),
            "flow": torch.ones(len(s), *s),
            "id": str(s),
            "index": i,
        }
        for i, s in enumerate(shapes)
    ]
    samples[0]["moving_labels"] = torch.ones(1, *shapes[0], dtype=torch.uint8)
    batch = collate(samples)
    largest = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    assert batch["moving"].shape == (len(shapes), 2, *largest)
    assert batch["flow"].shape == (len(shapes), len(largest), *largest)
    for i, shape in enumerate(shapes):
        assert batch["view"][i].sum() == torch.ones(shape).sum()
        assert (batch["view"][i, 0][tuple(slice(n) for n in shape)] == 1).all()
    assert batch["id"] == [str(shape) for shape in shapes]
    assert batch["index"].tolist() == list(range(len(shapes)))
    assert "moving_labels" not in batch
