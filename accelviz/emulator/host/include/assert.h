// No `#pragma once`: each inclusion looks at NDEBUG anew, as C's own header does.
#undef assert
#ifdef NDEBUG
#define assert(...) static_cast<void>(0)
#else
#define assert(...) emulator::require(static_cast<bool>(__VA_ARGS__), "asserted: " #__VA_ARGS__)
#endif
