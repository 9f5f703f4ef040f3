"""A panel for moving convolutions between the stages of a network (chapter 7).

A stage is a run of units (convolutions) with equal image width and channel count. The numbers that
the panel shows are sums over units, which `src/stages.ts` adds up for the depths chosen.
"""

from __future__ import annotations

from html import escape
from typing import Any

from accelviz.convolution import NETWORKS, Network, organize
from accelviz.convolution.networks import checked_network, unit_gains
from accelviz.errors import checked_choice
from accelviz.widgets import assets

#: Most units of a stage in the panel.
_MAX_UNITS = 16


class Stages:
    """The panel that `widgets.stages` returns; notebooks display it."""

    def __init__(self, network: Network | str) -> None:
        if isinstance(network, str):
            network = NETWORKS[checked_choice("network", network, NETWORKS)]
        self.network = network = checked_network(network)
        smallest = network.with_depths((1,) * len(network.stages))
        stages = []
        for i, stage in enumerate(network.stages):
            depths = tuple(1 + (i == j) for j in range(len(network.stages)))
            larger = smallest.with_depths(depths)
            stages.append(
                {
                    "label": f"{stage.width} x {stage.width}, {stage.channels} channels",
                    "more": {
                        "parameters": larger.parameters - smallest.parameters,
                        "flops": larger.flops - smallest.flops,
                    },
                    "gains": unit_gains(stage, _MAX_UNITS + 1),
                }
            )
        #: Data that the page draws.
        self.content: dict[str, Any] = {
            "name": network.name,
            "depths": [*network.depths],
            # With one unit per stage, whose cost depends on the channels of the stage before.
            "base": {"parameters": smallest.parameters, "flops": smallest.flops},
            "stages": stages,
            "path": [[*step.depths] for step in organize(network)],
        }

    def html(self) -> str:
        """Return HTML with a script that works offline and without a kernel."""
        fallback = f"<p><b>{escape(self.network.name)}: {self.network.depths} units.</b></p>"
        fallback += "<p>To move them, open this where scripts may run: in a notebook you trust.</p>"
        return assets.asking_page("stages", self.content, fallback)

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"Stages({self.network.name!r}, {self.network.depths})"
