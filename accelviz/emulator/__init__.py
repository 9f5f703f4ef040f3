"""The emulator: runs CUDA kernels on the host, thread by thread, checked and traced.

`build` compiles a kernel with the host's C++ compiler, `library` runs it in a separate process, and
`problems` converts its report to a message. `accelviz.devices.emulator` runs plans with it.
"""

from accelviz.emulator.build import unavailable_reason
from accelviz.emulator.call import emulate, trace_kernel
from accelviz.emulator.textures import Texture

__all__ = ["Texture", "emulate", "trace_kernel", "unavailable_reason"]
