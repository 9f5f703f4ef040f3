// The types bfloat16 and bfloat162 and their functions.
#pragma once

#include "../half.h"

using __nv_bfloat16 = emulator::Narrow<8, 7>;
using __nv_bfloat162 = emulator::Pair<__nv_bfloat16>;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
EMULATOR_NARROW(__nv_bfloat16, bfloat16)
