"""Models and metrics that explain a measurement."""
