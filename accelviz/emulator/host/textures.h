// Textures and surfaces. The object that a kernel gets is the address of the elements, which
// textures.py lays out by rows, with a TextureHead behind them.
//
// Included by cuda_on_host.h.
#pragma once

typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t, CUtexObject, CUsurfObject;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
struct cudaExtent {
    std::size_t width, height, depth;
};
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };

namespace emulator {

struct TextureHead {
    std::uint64_t magic;
    std::uint32_t size[3];  // elements in x, y and z
    std::uint32_t dimensions, channels, bytes, kind, address;
    std::uint32_t linear, normalized, as_float;
};
constexpr std::uint64_t texture_magic = 0x616363656c766978;

// The head of the texture with this address; ends the launch if there is none.
TextureHead texture_head(std::uint64_t object, void *code);

template <typename T, bool = is_vector<T>>
struct Texel {
    using Part = T;
    static constexpr unsigned count = 1;
};
template <typename T>
struct Texel<T, true> {
    using Part = decltype(std::declval<T>().x);
    static constexpr unsigned count = sizeof(T) / sizeof(Part);
};

// The element index that an index means outside of `size` elements; -1 for a border of zeros.
EMULATOR_PURE long long inside(long long i, long long size, const TextureHead &head) {
    if (i >= 0 && i < size) return i;
    const auto modulo = [](long long x, long long n) { return (x % n + n) % n; };
    if (head.address == 1) return -1;
    if (head.address == 2 && head.normalized) return modulo(i, size);
    if (head.address == 3 && head.normalized) {
        const long long at = modulo(i, 2 * size);
        return at < size ? at : 2 * size - 1 - at;
    }
    return i < 0 ? 0 : size - 1;
}

EMULATOR_PURE double texture_number(const unsigned char *from, const TextureHead &head) {
    const auto read = [&](auto value) {
        __builtin_memcpy(&value, from, sizeof value);
        const double limit = double(std::numeric_limits<decltype(value)>::max());
        const double number = double(value);
        return head.as_float ? (number < -limit ? -1 : number / limit) : number;
    };
    if (head.kind == 'f') {
        if (head.bytes == 4) return read(float());
        std::uint16_t bits;
        __builtin_memcpy(&bits, from, 2);
        const int exponent = bits >> 10 & 31;
        const double mantissa = bits & 1023, sign = bits >> 15 ? -1 : 1;
        if (exponent == 31) return mantissa ? __builtin_nan("") : sign * __builtin_inf();
        return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
    }
    if (head.kind == 'i')
        return head.bytes == 1 ? read((signed char)0) : head.bytes == 2 ? read(short()) : read(int());
    return head.bytes == 1 ? read((unsigned char)0) : head.bytes == 2 ? read((unsigned short)0) : read(0u);
}

// Adds `weight` times the element at an index in x, y and z to the sums of its channels.
EMULATOR_PURE void add_texel(std::uint64_t object, const TextureHead &head, const long long *at,
                             double weight, double *sums, void *code) {
    std::uint64_t index = 0;
    for (int d = 2; d >= 0; --d) {
        const long long i = inside(at[d], head.size[d], head);
        if (i < 0) return;
        index = index * head.size[d] + std::uint64_t(i);
    }
    const unsigned bytes = head.bytes * head.channels;
    const auto *from = reinterpret_cast<const unsigned char *>(object + index * bytes);
    access(from, bytes, READ_ONLY_LOAD, DEVICE, code);
    for (unsigned c = 0; c < head.channels; ++c)
        sums[c] += weight * texture_number(from + c * head.bytes, head);
}

// Ends the launch unless a texture has values of type T, which a GPU does not convert: floats or
// integers, in at least as many channels.
template <typename T>
EMULATOR_PURE void check_texel(const TextureHead &head, void *code) {
    using Part = typename Texel<T>::Part;
    constexpr unsigned count = Texel<T>::count;
    constexpr bool is_float = std::is_same_v<Part, float>;
    static_assert((is_float || (std::is_integral_v<Part> && sizeof(Part) <= 4)) && count != 3,
                  "a texture gives floats, or integers of 8 to 32 bits, alone or in vectors of 2 "
                  "or 4: for a double read an int2 and use __hiloint2double(v.y, v.x)");
    const bool gives_float = head.kind == 'f' || head.as_float;
    if (is_float == gives_float && count <= head.channels) return;
    const auto name = [](char kind, unsigned bytes) {
        return kind == 'f' ? bytes == 2 ? "half" : "float"
               : bytes == 1 ? kind == 'u' ? "uchar" : "char"
               : bytes == 2 ? kind == 'u' ? "ushort" : "short"
                            : kind == 'u' ? "uint" : "int";
    };
    constexpr char kind = is_float ? 'f' : std::is_unsigned_v<Part> ? 'u' : 'i';
    const auto digit = [](unsigned n) { return n == 4 ? "4" : n == 2 ? "2" : ""; };
    static char text[160];
    std::snprintf(text, sizeof text, "texture type: %s%s from a texture of %s%s%s",
                  name(kind, sizeof(Part)), digit(count), name(head.kind, head.bytes),
                  digit(head.channels), head.as_float ? " read as floats" : "");
    stop(text, code);
}

template <typename T>
EMULATOR_PURE T texel_of(const double *sums) {
    typename Texel<T>::Part parts[Texel<T>::count];
    for (unsigned c = 0; c < Texel<T>::count; ++c) parts[c] = typename Texel<T>::Part(sums[c]);
    T result;
    __builtin_memcpy(static_cast<void *>(&result), parts, sizeof parts);
    return result;
}

// Reads a texture at coordinates of `filtered` axes, and at an index (a layer) in the next one.
template <typename T>
EMULATOR_PURE T sample(cudaTextureObject_t object, std::initializer_list<float> coordinates,
                       int layer, void *code) {
    const TextureHead head = texture_head(object, code);
    check_texel<T>(head, code);
    const unsigned axes = unsigned(coordinates.size());
    long long first[3] = {};
    double fraction[3] = {}, sums[4] = {};
    for (unsigned d = 0; d < axes; ++d) {
        float x = coordinates.begin()[d];
        if (head.normalized) x *= float(head.size[d]);
        if (head.linear) x -= 0.5f;
        const float whole = std::floor(x);
        first[d] = (long long)(whole < -2e9f ? -2e9f : whole > 2e9f ? 2e9f : whole);
        // Weights have 8 bits behind the point.
        if (head.linear) fraction[d] = std::floor(double(x - whole) * 256 + 0.5) / 256;
    }
    if (layer >= 0 && axes < 3) {
        const long long last = (long long)(head.size[axes]) - 1;
        first[axes] = layer < last ? layer : last;
    }
    for (unsigned corner = 0; corner < (head.linear ? 1u << axes : 1); ++corner) {
        long long at[3];
        double weight = 1;
        for (unsigned d = 0; d < 3; ++d) {
            const bool next = d < axes && corner >> d & 1;
            at[d] = first[d] + next;
            if (d < axes && head.linear) weight *= next ? fraction[d] : 1 - fraction[d];
        }
        if (weight) add_texel(object, head, at, weight, sums, code);
    }
    return texel_of<T>(sums);
}

// Reads an element of linear memory; outside of it are zeros.
template <typename T>
EMULATOR_PURE T fetch(cudaTextureObject_t object, int i, void *code) {
    const TextureHead head = texture_head(object, code);
    check_texel<T>(head, code);
    const long long at[3] = {i, 0, 0};
    double sums[4] = {};
    if (i >= 0 && unsigned(i) < head.size[0]) add_texel(object, head, at, 1, sums, code);
    return texel_of<T>(sums);
}

// The address of an element of a surface; null if the access is to be left out.
EMULATOR_PURE unsigned char *surface_address(cudaSurfaceObject_t object, long long x, long long y,
                                             long long z, unsigned bytes, int mode, void *code) {
    const TextureHead head = texture_head(object, code);
    const long long row = (long long)(head.size[0]) * head.bytes * head.channels;
    const long long height = head.size[1], depth = head.size[2];
    const bool within = x >= 0 && x + bytes <= row && y >= 0 && y < height && z >= 0 && z < depth;
    if (!within && mode == cudaBoundaryModeZero) return nullptr;
    if (!within && mode == cudaBoundaryModeTrap) stop("surface out of bounds", code);
    const auto clamped = [](long long i, long long last) { return i < 0 ? 0 : i > last ? last : i; };
    x = clamped(x, row - bytes);
    y = clamped(y, height - 1);
    z = clamped(z, depth - 1);
    return reinterpret_cast<unsigned char *>(object + (z * height + y) * row + x);
}

template <typename T>
EMULATOR_PURE T surface_read(cudaSurfaceObject_t object, long long x, long long y, long long z,
                             int mode, void *code) {
    T value{};
    const unsigned char *from = surface_address(object, x, y, z, sizeof(T), mode, code);
    if (!from) return value;
    access(from, sizeof(T), LOAD, DEVICE, code);
    __builtin_memcpy(static_cast<void *>(__builtin_addressof(value)), from, sizeof(T));
    return value;
}
template <typename T>
EMULATOR_PURE void surface_write(const T &value, cudaSurfaceObject_t object, long long x,
                                 long long y, long long z, int mode, void *code) {
    unsigned char *to = surface_address(object, x, y, z, sizeof(T), mode, code);
    if (!to) return;
    access(to, sizeof(T), STORE, DEVICE, code);
    __builtin_memcpy(to, __builtin_addressof(value), sizeof(T));
}

}  // namespace emulator

// Each function has a second form, which writes the result through a pointer.
#define EMULATOR_SAMPLED(NAME, PARAMETERS, ARGUMENTS, LAYER)                                      \
    template <typename T>                                                                         \
    EMULATOR_INSTRUCTION T NAME(cudaTextureObject_t object, EMULATOR_ALL PARAMETERS) {            \
        return emulator::sample<T>(object, {EMULATOR_ALL ARGUMENTS}, LAYER, EMULATOR_HERE);       \
    }                                                                                             \
    template <typename T>                                                                         \
    EMULATOR_INSTRUCTION void NAME(T *to, cudaTextureObject_t object, EMULATOR_ALL PARAMETERS) {  \
        const T texel =                                                                           \
            emulator::sample<T>(object, {EMULATOR_ALL ARGUMENTS}, LAYER, EMULATOR_HERE);          \
        emulator::move(&texel, to, sizeof(T), sizeof(T), EMULATOR_HERE);                          \
    }
EMULATOR_SAMPLED(tex1D, (float x), (x), -1)
EMULATOR_SAMPLED(tex2D, (float x, float y), (x, y), -1)
EMULATOR_SAMPLED(tex3D, (float x, float y, float z), (x, y, z), -1)
EMULATOR_SAMPLED(tex1DLayered, (float x, int layer), (x), layer < 0 ? 0 : layer)
EMULATOR_SAMPLED(tex2DLayered, (float x, float y, int layer), (x, y), layer < 0 ? 0 : layer)
#undef EMULATOR_SAMPLED

template <typename T>
EMULATOR_INSTRUCTION T tex1Dfetch(cudaTextureObject_t object, int i) {
    return emulator::fetch<T>(object, i, EMULATOR_HERE);
}
template <typename T>
EMULATOR_INSTRUCTION void tex1Dfetch(T *to, cudaTextureObject_t object, int i) {
    const T texel = emulator::fetch<T>(object, i, EMULATOR_HERE);
    emulator::move(&texel, to, sizeof(T), sizeof(T), EMULATOR_HERE);
}

#define EMULATOR_SURFACE(NAME, PARAMETERS, X, Y, Z)                                               \
    template <typename T>                                                                         \
    EMULATOR_INSTRUCTION T NAME##read(cudaSurfaceObject_t object, EMULATOR_ALL PARAMETERS,        \
                                      cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {      \
        return emulator::surface_read<T>(object, X, Y, Z, mode, EMULATOR_HERE);                   \
    }                                                                                             \
    template <typename T>                                                                         \
    EMULATOR_INSTRUCTION void NAME##read(T *to, cudaSurfaceObject_t object,                       \
                                         EMULATOR_ALL PARAMETERS,                                 \
                                         cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {   \
        const T element = emulator::surface_read<T>(object, X, Y, Z, mode, EMULATOR_HERE);        \
        emulator::move(__builtin_addressof(element), to, sizeof(T), sizeof(T), EMULATOR_HERE);    \
    }                                                                                             \
    template <typename T>                                                                         \
    EMULATOR_INSTRUCTION void NAME##write(T value, cudaSurfaceObject_t object,                    \
                                          EMULATOR_ALL PARAMETERS,                                \
                                          cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {  \
        emulator::surface_write(value, object, X, Y, Z, mode, EMULATOR_HERE);                     \
    }
EMULATOR_SURFACE(surf1D, (int x), x, 0, 0)
EMULATOR_SURFACE(surf2D, (int x, int y), x, y, 0)
EMULATOR_SURFACE(surf3D, (int x, int y, int z), x, y, z)
EMULATOR_SURFACE(surf1DLayered, (int x, int layer), x, layer, 0)
EMULATOR_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
#undef EMULATOR_SURFACE

// Functions that are errors where a thread calls them.
#define EMULATOR_TEXTURE(NAME)                            \
    template <typename T = float, typename... A>          \
    EMULATOR_BARRIER T NAME(const A &...) {               \
        emulator::stop("texture: " #NAME, EMULATOR_HERE); \
        return T();                                       \
    }
EMULATOR_TEXTURE(tex1DLod) EMULATOR_TEXTURE(tex2DLod) EMULATOR_TEXTURE(tex3DLod)
EMULATOR_TEXTURE(tex1DGrad) EMULATOR_TEXTURE(tex2DGrad) EMULATOR_TEXTURE(tex3DGrad)
EMULATOR_TEXTURE(tex2Dgather) EMULATOR_TEXTURE(texCubemap) EMULATOR_TEXTURE(texCubemapLod)
EMULATOR_TEXTURE(texCubemapLayered) EMULATOR_TEXTURE(surfCubemapread)
EMULATOR_TEXTURE(surfCubemapwrite)
