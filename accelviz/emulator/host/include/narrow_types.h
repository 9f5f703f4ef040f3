// In place of headers of CUDA's libraries and of PyTorch, which include these.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
