import matplotlib
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _closed():
    """Each test closes what pyplot knows; pictures made in a loop close theirs there."""
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure(layout="constrained", figsize=(9, 5)).subplots()
