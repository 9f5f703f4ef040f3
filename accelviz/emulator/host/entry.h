// The functions by which the runtime calls a kernel and describes its parameters for Python.
#pragma once

#include <cstddef>
#include <cstdio>
#include <type_traits>
#include <utility>

namespace emulator {

template <typename T>
constexpr std::size_t size_of() {
    if constexpr (std::is_void_v<T> || std::is_function_v<T>) return 1;
    else return sizeof(T);
}

// The kind of T as in signature.py, and its size in bytes; for a vector, those of a component.
template <typename T, typename = void>
struct Element {
    static constexpr char kind = std::is_void_v<T>                                 ? 'v'
                                 : std::is_empty_v<T>                              ? 'e'
                                 : std::is_pointer_v<T>                            ? 'p'
                                 : std::is_same_v<T, bool>                         ? 'b'
                                 : std::is_floating_point_v<T>                     ? 'f'
                                 : !std::is_arithmetic_v<T> && !std::is_enum_v<T> ? 's'
                                 : std::is_signed_v<T>                             ? 'i'
                                                                                   : 'u';
    static constexpr std::size_t bytes = size_of<T>();
};
template <>
constexpr bool is_vector<dim3> = true;
template <typename T>
struct Element<T, std::enable_if_t<is_vector<T>>> : Element<decltype(std::declval<T>().x)> {};

template <typename T>
const char *name_of() {
    return __PRETTY_FUNCTION__;
}

// Writes a line for a parameter: 'p' (pointer) or 'v' (value), 1 if const, kind and bytes of the
// pointer's target or of the value (for a vector of a component), its bytes, name of the type.
template <typename P>
int describe(char *text, std::size_t room) {
    using Type = std::remove_cv_t<std::remove_reference_t<P>>;
    using Target = std::remove_pointer_t<Type>;
    using Plain = std::remove_cv_t<Target>;
    return std::snprintf(text, room, "%c %d %c %zu %zu %s\n", std::is_pointer_v<Type> ? 'p' : 'v',
                         int(std::is_const_v<Target>), Element<Plain>::kind, Element<Plain>::bytes,
                         size_of<Plain>(), name_of<Type>());
}

template <typename... P>
void describe_all(char *text, std::size_t room) {
    std::size_t used = std::strlen(text);
    const auto add = [&](int more) { used += std::size_t(more) < room - used ? more : 0; };
    (add(describe<P>(text + used, room - used)), ...);
}
template <typename R, typename... P>
void describe(R (*)(P...), char *text, std::size_t room) {
    describe_all<P...>(text, room);
}

// An argument on the thread's stack: copies of vectors and half from there pass the checks.
template <typename T>
struct Argument {
    alignas(T) unsigned char bytes[sizeof(T)];

    EMULATOR_PURE explicit Argument(const void *from) { std::memcpy(bytes, from, sizeof(T)); }
    EMULATOR_PURE T &value() { return *reinterpret_cast<T *>(bytes); }
};

template <typename R, typename... P, std::size_t... I>
EMULATOR_INSTRUCTION inline void call(R (*kernel)(P...), void **arguments,
                                      std::index_sequence<I...>) {
    kernel(Argument<std::remove_cv_t<std::remove_reference_t<P>>>(arguments[I]).value()...);
}

template <typename R, typename... P>
EMULATOR_INSTRUCTION inline void call(R (*kernel)(P...), void **arguments) {
    static_assert(std::is_void_v<R>,
                  "a kernel returns nothing: it is a `void` function that writes its results to "
                  "arrays");
    static_assert(!(std::is_reference_v<P> || ...),
                  "a kernel takes no references: pass a number by value, or a pointer to an array");
    call(kernel, arguments, std::index_sequence_for<P...>{});
}

// The threads of __launch_bounds__, whose further arguments the emulator does not need.
template <typename... T>
constexpr long long first(long long threads, T...) {
    return threads;
}

// The blocks of __cluster_dims__ in one number.
constexpr long long cluster(long long x, long long y = 1, long long z = 1) {
    return x | y << 16 | z << 32;
}

}  // namespace emulator

// Libraries are linked without the start-up code of C, which defines it.
#ifdef __linux__
extern "C" {
__attribute__((weak, visibility("hidden"))) void *__dso_handle;
}
#endif
// The type of a variable for `describe`: a pointer to its elements.
#define EMULATED_VARIABLE(NAME) std::remove_all_extents_t<decltype(NAME)> *
// Defines emulator_entry, which calls the kernel, and emulator_description, which writes the number
// of threads in its launch bounds and its `cluster` (0: none), describes the parameters and, after a line
// "variables", the variables, and returns the kernel's address.
#define EMULATED_KERNEL(BOUND, CLUSTER, KERNEL, ...)                                 \
    extern "C" __attribute__((visibility("default"))) EMULATOR_UNCOVERED void        \
    emulator_entry(void **arguments) {                                               \
        emulator::call(&EMULATOR_ALL KERNEL, arguments);                             \
    }                                                                                \
    extern "C" __attribute__((visibility("default"))) void *emulator_description(    \
        char *text, std::size_t room) {                                              \
        std::snprintf(text, room, "%lld %lld\n", (long long)(BOUND), (long long)(CLUSTER)); \
        emulator::describe(&EMULATOR_ALL KERNEL, text, room);                        \
        std::strncat(text, "variables\n", room - 1 - std::strlen(text));             \
        emulator::describe_all<__VA_ARGS__>(text, room);                             \
        return reinterpret_cast<void *>(&EMULATOR_ALL KERNEL);                       \
    }
