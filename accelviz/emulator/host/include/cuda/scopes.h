// cuda::thread_scope.
#pragma once

#include "../../cuda_on_host.h"

namespace cuda {

enum thread_scope {
    thread_scope_system,
    thread_scope_device,
    thread_scope_block,
    thread_scope_thread,
};

constexpr emulator::Scope emulated(thread_scope scope) {
    return scope < thread_scope_block ? emulator::DEVICE : emulator::BLOCK;
}

}  // namespace cuda
