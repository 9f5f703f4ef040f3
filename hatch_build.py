"""The description on a package index: README.md without links and pictures of the checkout."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A picture, or a link, to a file of the checkout.
_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)[^)]*\)")


class Readme(MetadataHookInterface):
    """Set the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Replace links by their texts, and pictures by their descriptions."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = _RELATIVE.sub(lambda link: f"({link[2]})" if link[1] else link[2], text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
