"""Interactive pages for notebooks; only a kernel behind the explorer needs anywidget."""

from __future__ import annotations

from accelviz.widgets.entry import ask, explore, predict, stages

__all__ = ["ask", "explore", "predict", "stages"]
