"""The image networks of the benchmarks, and sliding channels composed of PyTorch's operations."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from benchmarks.measure import image_networks  # noqa: E402


@pytest.mark.parametrize("kind", ["channel_stack", "convolution_stack", "masked"])
@pytest.mark.parametrize(("groups", "overlap"), [(2, 0.5), (4, 0.25), (2, 0.75), (8, 0.5)])
def test_what_the_benchmarks_compose_of_pytorch_computes_the_same(kind, groups, overlap):
    """Windows that wrap around, and numbers of filters that the windows do not divide."""
    ours = image_networks.mixing("sliding", groups, overlap)(24 if groups < 4 else 16, 13)
    other = image_networks.mixing(kind, groups, overlap)(24 if groups < 4 else 16, 13)
    other.load_state_dict(ours.state_dict())
    x = torch.randn(2, ours.channels.in_channels, 3, 5)
    torch.testing.assert_close(other(x), ours(x))


@pytest.mark.parametrize(
    ("name", "millions"),
    # As printed in Table 6.2, or the VGGs' without the biases that a normalization makes useless.
    {
        "VGG16": 14.72,
        "VGG19": 20.04,
        "MobileNet": 3.22,
        "ResNet18": 11.17,
        "ResNet50": 23.52,
    }.items(),
)
def test_networks_of_the_benchmarks_have_the_printed_sizes(name, millions):
    network = image_networks.image_network(name)
    assert image_networks.n_parameters(network) / 1e6 == pytest.approx(millions, abs=0.006)
    for pixels, classes in ((32, 10), (224, 7)):
        sizes = {"pixels": pixels, "classes": classes, "narrower": 16}
        narrow = image_networks.image_network(name, "sliding", 2, 0.5, **sizes)
        assert narrow(torch.randn(2, 3, pixels, pixels)).shape == (2, classes)
