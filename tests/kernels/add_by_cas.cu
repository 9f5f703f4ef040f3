// The programming guide's way to an atomic that there is not.
__device__ double add_by_cas(double *address, double value) {
    unsigned long long *words = (unsigned long long *)address, seen;
    unsigned long long old = *(volatile unsigned long long *)words;
    do {
        seen = old;
        old = atomicCAS(words, seen, __double_as_longlong(value + __longlong_as_double(seen)));
    } while (seen != old);
    return __longlong_as_double(old);
}
