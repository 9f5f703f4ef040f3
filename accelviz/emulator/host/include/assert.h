// No `#pragma once`: each inclusion depends on the current NDEBUG, as with C's header.
#undef assert
#ifdef NDEBUG
#define assert(...) static_cast<void>(0)
#else
#define assert(...) emulator::require(static_cast<bool>(__VA_ARGS__), "asserted: " #__VA_ARGS__)
#endif
