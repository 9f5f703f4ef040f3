"""Interactive panels for JupyterLab. Only opening one needs ipywidgets and anywidget."""

from __future__ import annotations

from accelviz.widgets.entry import ask, explore, predict

__all__ = ["ask", "explore", "predict"]
