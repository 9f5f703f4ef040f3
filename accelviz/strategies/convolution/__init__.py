"""Strategies of 1 x 1 convolutions whose filters read some of the channels, a system a file."""
