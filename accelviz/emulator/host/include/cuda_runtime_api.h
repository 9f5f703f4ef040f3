// Empty: cuda_on_host.h has all that kernels use; functions for the host do not exist here.
