// Fibers: threads of the emulated block, each with a stack, between which one thread of the host
// switches. A switch saves the callee-saved registers.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace emulator {

extern "C" void emulator_switch(void **save, void *load);
extern "C" void emulator_begin();

#if defined(__APPLE__)
#define EMULATOR_SYMBOL(NAME) "_" NAME
#else
#define EMULATOR_SYMBOL(NAME) NAME
#endif

#if defined(__x86_64__)
__asm__(".text\n.globl " EMULATOR_SYMBOL("emulator_switch") "\n" EMULATOR_SYMBOL("emulator_switch") ":\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
constexpr std::size_t return_word = 6, frame_words = 8;
#elif defined(__aarch64__)
__asm__(".text\n.globl " EMULATOR_SYMBOL("emulator_switch") "\n" EMULATOR_SYMBOL("emulator_switch") ":\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
    "stp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
    "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
    "ldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n");
constexpr std::size_t return_word = 11, frame_words = 20;
#else
#error "the emulator supports x86-64 and arm64 only"
#endif

class Fiber {
   public:
    // Stacks begin in different lines of the processor's caches: each switch uses their beginning.
    static constexpr std::size_t line = 64, most_lines = 1024;
    // Twice the 512 KB of local memory of a GPU's thread, since code for the host needs more.
    static constexpr std::size_t stack_bytes = 1024 * 1024 + most_lines * line;
    static constexpr std::size_t guard_bytes = 64 * 1024;

    // Stacks are mapped 64 at a time and are not freed before the process ends.
    Fiber() {
        if (left_ == 0) {
            left_ = 64;
            void *memory = mmap(nullptr, left_ * stack_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) std::abort();
            next_ = static_cast<char *>(memory);
        }
        stack_ = next_;
        next_ += stack_bytes;
        --left_;
        number_ = count_++;
        if (mprotect(stack_, guard_bytes, PROT_NONE)) std::abort();
    }
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    // The next switch to this fiber begins `emulator_begin` on an empty stack.
    void reset() {
        char *const end = stack_ + stack_bytes - number_ * 13 % most_lines * line;
        auto *top = reinterpret_cast<std::uintptr_t *>(end) - frame_words;
        for (std::size_t i = 0; i < frame_words; ++i) top[i] = 0;
        top[return_word] = reinterpret_cast<std::uintptr_t>(&emulator_begin);
        stack_pointer_ = top;
    }
    bool owns(const void *address) const {
        return address >= stack_ && address < stack_ + stack_bytes;
    }
    // The end of the stack of a fiber that does not run.
    const std::uintptr_t *top() const { return static_cast<std::uintptr_t *>(stack_pointer_); }
    // Whether an address is in the guard pages, or below them, where a stack overflow accesses.
    bool guards(const void *address) const {
        return address >= stack_ - guard_bytes && address < stack_ + guard_bytes;
    }
    void enter() { emulator_switch(&host_stack_pointer_, stack_pointer_); }
    void leave() { emulator_switch(&stack_pointer_, host_stack_pointer_); }
    void switch_to(const Fiber &other) { emulator_switch(&stack_pointer_, other.stack_pointer_); }

   private:
    char *stack_;
    std::size_t number_;
    void *stack_pointer_ = nullptr;
    inline static void *host_stack_pointer_ = nullptr;
    inline static char *next_ = nullptr;
    inline static std::size_t left_ = 0, count_ = 0;
};

}  // namespace emulator
