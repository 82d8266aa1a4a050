// What all kernels share: element types, conversions, the few machine instructions, reductions in a fixed order.
//
// ELEMENT is the type of activations, cache and dense weights: 0 f32, 1 bf16, 2 f16. No header of the toolkit is included, so that
// NVRTC needs none where this is compiled. With EARNEST_TWIN the same source is compiled as C++ for tests; tests/cuda_twin/twin.h
// then says what a thread, a warp and shared memory are.

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef EARNEST_TWIN
#include "twin.h"
#else
#define KERNEL_OF(threads, blocks, name) extern "C" __global__ void __launch_bounds__(threads, blocks) earnest_##name
#define REGISTER(name)
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) u8 name[]
#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define ALIGNED(n) __align__(n)
#define INFINITE __int_as_float(0x7f800000)

DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

DEVICE u16 to_bf16_bits(float x) {
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}
DEVICE u16 to_f16_bits(float x) {
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}
DEVICE float from_f16_bits(u16 x) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
    return r;
}
// 2^x; 1 at 0 and 0 at minus infinity, exactly. Results below 2^-126 are 0: keeping them takes four more instructions.
DEVICE float exp2_fast(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
DEVICE void load_matrices(u32 (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
DEVICE void load_matrices_transposed(u32 (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
// c[16x8] += a[16x16] b[16x8], in f32.
DEVICE void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if ELEMENT == 2
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#endif
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// 16 bytes from global to shared memory in the background; zeros if not `valid` (the address must still be one).
DEVICE void copy_async(void *to, const void *from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until all but the newest N groups of this thread's copies have arrived.
template <int N> DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#endif

struct bf16 {
    u16 bits;
};
struct f16 {
    u16 bits;
};
struct ALIGNED(16) u32x4 {
    u32 v[4];
};
struct ALIGNED(8) u32x2 {
    u32 v[2];
};

DEVICE float widen(float x) { return x; }
DEVICE float widen(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
DEVICE float widen(f16 x) { return from_f16_bits(x.bits); }

#if ELEMENT == 0
typedef float T;
DEVICE T narrow(float x) { return x; }
#elif ELEMENT == 1
typedef bf16 T;
DEVICE T narrow(float x) {
    T r;
    r.bits = to_bf16_bits(x);
    return r;
}
#else
typedef f16 T;
DEVICE T narrow(float x) {
    T r;
    r.bits = to_f16_bits(x);
    return r;
}
#endif

#if ELEMENT != 0
DEVICE u32 pack(float low, float high) { return (u32)narrow(low).bits | ((u32)narrow(high).bits << 16); }
#endif

// Eight elements at a multiple of eight, in 16 bytes at a time.
DEVICE void load_8(const T *from, float (&x)[8]) {
#if ELEMENT == 0
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const u32x4 raw = ((const u32x4 *)from)[half];
        for (int i = 0; i < 4; i++) x[half * 4 + i] = __uint_as_float(raw.v[i]);
    }
#else
    const u32x4 raw = *(const u32x4 *)from;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        T one;
        one.bits = (u16)(raw.v[i / 2] >> (i % 2 * 16));
        x[i] = widen(one);
    }
#endif
}
DEVICE void store_8(T *to, const float (&x)[8]) {
#if ELEMENT == 0
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32x4 raw;
        for (int i = 0; i < 4; i++) raw.v[i] = __float_as_uint(x[half * 4 + i]);
        ((u32x4 *)to)[half] = raw;
    }
#else
    u32x4 raw;
#pragma unroll
    for (int i = 0; i < 4; i++) raw.v[i] = pack(x[2 * i], x[2 * i + 1]);
    *(u32x4 *)to = raw;
#endif
}

// Sums over lanes: a butterfly, the same bits in every lane.
DEVICE float warp_sum(float x) {
    for (int step = 16; step > 0; step >>= 1) x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}
DEVICE float warp_max(float x) {
    for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

// Sum over all threads of a block (a multiple of 32, at most 1024): the warps' sums in their order. Every thread gets it.
DEVICE float block_sum(float x, float *scratch) {
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[warp] = x;
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < warps; i++) sum = __fadd_rn(sum, scratch[i]);
    return sum;
}
DEVICE float block_max(float x, float *scratch) {
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[warp] = x;
    __syncthreads();
    float top = scratch[0];
    for (int i = 1; i < warps; i++) top = fmaxf(top, scratch[i]);
    return top;
}
