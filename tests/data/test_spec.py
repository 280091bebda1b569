import json

import pytest

from regnet.data.spec import InputSpec


def test_a_spec_survives_plain_json():
    spec = InputSpec(ndim=2, channels=3, spacing=None, margin_mm=None, normalisation="window -100 240", skull="any")
    assert InputSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_missing_keys_take_their_defaults():
    assert InputSpec.from_dict({"spacing": 2.0}) == InputSpec(spacing=2.0)


def test_an_unknown_key_is_named():
    with pytest.raises(ValueError, match="unknown flavour; known are ndim"):
        InputSpec.from_dict({"flavour": 1})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ndim", 4),
        ("channels", 0),
        ("orientation", "LPS"),
        ("spacing", 0.0),
        ("spacing", float("nan")),
        ("margin_mm", -1.0),
        ("spacing", "abc"),
        ("spacing", (2.0, 2.0, 2.0)),
        ("margin_mm", "x"),
        ("normalisation", 3),
        ("normalisation", "max"),
        ("normalisation", "window 3"),
        ("normalisation", "window 3 1"),
        ("skull", "maybe"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_name(key, value):
    with pytest.raises(ValueError, match=key):
        InputSpec(**{key: value})


def test_the_window_is_read_from_its_name():
    assert InputSpec(normalisation="window -100 240.5").window() == (-100.0, 240.5)
