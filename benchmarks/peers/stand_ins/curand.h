// Stand-in for cuRAND, with which dgNN draws dropout masks; its host function is never called.
#pragma once

using curandGenerator_t = void *;
enum { CURAND_RNG_PSEUDO_DEFAULT, CURAND_STATUS_SUCCESS };
template <typename... Arguments>
int curandCreateGenerator(Arguments...) {
    return CURAND_STATUS_SUCCESS;
}
template <typename... Arguments>
int curandSetPseudoRandomGeneratorSeed(Arguments...) {
    return CURAND_STATUS_SUCCESS;
}
template <typename... Arguments>
int curandGenerateUniform(Arguments...) {
    return CURAND_STATUS_SUCCESS;
}
