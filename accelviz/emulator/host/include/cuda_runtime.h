// All that a kernel has of it is there without; functions for the host are not in the emulator.
