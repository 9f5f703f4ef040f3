// Runs kernels of the corpus, one after another: PROGRAM SECONDS read|write (KERNEL INPUT)...
//
// The generated part before this file defines kernels and `entries`. INPUT holds 64-bit integers
// (grid, block, bytes of shared memory, number of arguments; then size and kind of each argument),
// followed by the arguments' bytes. Each array is a separate allocation. With "write", unwritten
// arrays are filled with 0xff before the launch, and all arrays are written to INPUT.out after it.
// With "read", unwritten arrays stay uninitialized, so that a checker can detect reads of them.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

enum Kind : std::int64_t { SCALAR, ARRAY, UNWRITTEN };

static void check(cudaError_t status, const char *call) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(status));
    std::fflush(stderr);
    _exit(3);
}

static bool launch(const char *name, const std::string &path, bool writes) {
    const void *kernel = nullptr;
    for (const Entry &entry : entries) {
        if (std::strcmp(entry.name, name) == 0) kernel = entry.kernel;
    }
    std::ifstream input(path, std::ios::binary);
    std::int64_t head[8];
    if (!kernel || !input.read(reinterpret_cast<char *>(head), sizeof head)) return false;
    std::vector<std::int64_t> about(2 * head[7]);
    input.read(reinterpret_cast<char *>(about.data()), about.size() * sizeof about[0]);
    std::vector<std::vector<char>> bytes(head[7]);
    std::vector<void *> arrays(head[7]), arguments(head[7]);
    for (std::int64_t i = 0; i < head[7]; ++i) {
        const std::int64_t size = about[2 * i], kind = about[2 * i + 1];
        bytes[i].resize(size);
        if (!input.read(bytes[i].data(), size)) return false;
        arguments[i] = bytes[i].data();
        if (kind == SCALAR) continue;
        check(cudaMalloc(&arrays[i], size), "cudaMalloc");
        if (kind == ARRAY) {
            check(cudaMemcpy(arrays[i], bytes[i].data(), size, cudaMemcpyHostToDevice), "copy");
        } else if (writes) {
            check(cudaMemset(arrays[i], 0xff, size), "cudaMemset");
        }
        arguments[i] = &arrays[i];
    }
    const dim3 grid(head[0], head[1], head[2]), block(head[3], head[4], head[5]);
    check(cudaLaunchKernel(kernel, grid, block, arguments.data(), head[6], nullptr), "launch");
    check(cudaDeviceSynchronize(), "kernel");
    std::ofstream output;
    if (writes) output.open(path + ".out", std::ios::binary);
    for (std::int64_t i = 0; i < head[7]; ++i) {
        if (about[2 * i + 1] == SCALAR) continue;
        if (writes) {
            check(cudaMemcpy(bytes[i].data(), arrays[i], bytes[i].size(), cudaMemcpyDeviceToHost), "copy");
            output.write(bytes[i].data(), bytes[i].size());
        }
        check(cudaFree(arrays[i]), "cudaFree");
    }
    return bool(output);
}

int main(int count, char **words) {
    if (count < 5) return 2;
    alarm(std::atoi(words[1]));  // ends the program if a kernel does not end
    const bool writes = std::strcmp(words[2], "write") == 0;
    for (int i = 3; i + 1 < count; i += 2) {
        if (!launch(words[i], words[i + 1], writes)) return 2;
    }
    return 0;
}
