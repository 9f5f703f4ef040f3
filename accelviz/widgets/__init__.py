"""Interactive pages for notebooks: an explorer, predictions, questions, a network's stages.

All work without a kernel. For an explorer with a kernel, ipywidgets and anywidget are needed.
"""

from __future__ import annotations

from accelviz.widgets.entry import ask, explore, predict, stages

__all__ = ["ask", "explore", "predict", "stages"]
