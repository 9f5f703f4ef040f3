"""A panel in which one moves convolutions between the stages of a network (chapter 7)."""

from __future__ import annotations

from html import escape
from typing import Any

from accelviz.convolution import NETWORKS, Network, organize
from accelviz.convolution.networks import checked_network, unit_gains
from accelviz.errors import checked_choice
from accelviz.widgets import assets

#: Most units that a stage may be given.
_MOST = 16


class Stages:
    """What `widgets.stages` returns; as the last line of a cell it is shown."""

    def __init__(self, network: Network | str) -> None:
        if isinstance(network, str):
            network = NETWORKS[checked_choice("network", network, NETWORKS)]
        self.network = network = checked_network(network)
        ones = network.with_depths((1,) * len(network.stages))
        described = []
        for i, stage in enumerate(network.stages):
            two = ones.with_depths(tuple(1 + (i == j) for j in range(len(network.stages))))
            described.append(
                {
                    "label": f"{stage.width} x {stage.width}, {stage.channels} channels",
                    "more": {
                        "parameters": two.parameters - ones.parameters,
                        "flops": two.flops - ones.flops,
                    },
                    "gains": unit_gains(stage, _MOST + 1),
                }
            )
        #: What the page draws from.
        self.content: dict[str, Any] = {
            "name": network.name,
            "depths": [*network.depths],
            # With one unit a stage: what such a one costs depends on the stage before.
            "base": {"parameters": ones.parameters, "flops": ones.flops},
            "stages": described,
            "path": [[*step.depths] for step in organize(network)],
        }

    def html(self) -> str:
        """Return it as HTML with a script, alive without a kernel or a network."""
        told = f"<p><b>{escape(self.network.name)}: {self.network.depths} units.</b></p>"
        told += "<p>To move them, open this where scripts may run: in a notebook you trust.</p>"
        return assets.asking_page("stages", self.content, told)

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"Stages({self.network.name!r}, {self.network.depths})"
