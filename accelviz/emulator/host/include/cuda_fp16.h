// The types half and half2 and their functions.
#pragma once

#include "../half.h"

using __half = emulator::Narrow<5, 10>;
using __half2 = emulator::Pair<__half>;
using half = __half;
using half2 = __half2;
EMULATOR_NARROW(__half, half)
EMULATOR_PURE signed char __half2char_rz(__half x) { return x; }
EMULATOR_PURE unsigned char __half2uchar_rz(__half x) { return x; }
