"""The emulator: runs CUDA kernels on a host without a GPU, checked and traced."""
