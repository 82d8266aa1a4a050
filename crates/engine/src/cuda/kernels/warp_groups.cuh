// Instructions of a warp group, 128 threads of compute capability 9.0 (sm_90a): matrix products that read both operands from shared
// memory while the threads go on. PTX ISA 9.7.15, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".

#ifdef EARNEST_TWIN
#include "warp_groups.h"
#else

// What this thread has written to shared memory before, by cp.async too once it was waited for, becomes visible to products after it:
// they read through the async proxy, and only bulk copies write through it (9.7.9.25.2, 9.7.15.4).
DEVICE void publish_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Before the first product, and between an access to an accumulator and the next product that adds to it (9.7.15.7.1).
DEVICE void order_accumulators() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until all but the newest N groups are done. Their accumulators are not to be touched before.
template <int N> DEVICE void wait_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// Keeps the compiler from reading an accumulator before the wait that precedes this.
template <int COUNT> DEVICE void take(float (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#if ELEMENT == 2
#define OPERANDS "k16.f32.f16.f16"
#else
#define OPERANDS "k16.f32.bf16.bf16"
#endif
#define OUT_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define OUT_8(i) OUT_4(i), OUT_4(i + 4)
#define OUT_16(i) OUT_8(i), OUT_8(i + 8)
#define OUT_32(i) OUT_16(i), OUT_16(i + 16)
#define OUT_64(i) OUT_32(i), OUT_32(i + 32)
#define OUT_48(i) OUT_32(i), OUT_16(i + 32)
#define OUT_96(i) OUT_48(i), OUT_48(i + 48)
#define NAMES_4 "%0, %1, %2, %3"
#define NAMES_8 NAMES_4 ", %4, %5, %6, %7"
#define NAMES_16 NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_32 NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_48 NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define NAMES_64 NAMES_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_96                                                                                                                   \
    NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "    \
             "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

// d[64 x n] = a[64 x 16] b[n x 16]^T, plus d if `adds`; with 32 columns of E4M3 instead of 16. Thread t of the group has rows t / 32 * 16 + t % 32 / 4 (+ 8 for the second two
// of four) and columns t % 4 * 2 + 8 * j (+ 1) in d[4 * j..].
#define MULTIPLY_AS(name, operands, more, n, count, a_name, b_name, adds_name)                                                     \
    DEVICE void name(float (&d)[count], u64 a, u64 b, bool adds) {                                                       \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds_name ", 0;\n"                                                  \
                     "wgmma.mma_async.sync.aligned.m64n" #n operands " {" NAMES_##count "}, " a_name ", " b_name ", adds, 1, 1"    \
                     more ";\n}"                                                                                                   \
                     : OUT_##count(0)                                                                                              \
                     : "l"(a), "l"(b), "r"((int)adds));                                                                            \
    }
#define MULTIPLY(n, count, a, b, adds)                                                                                             \
    MULTIPLY_AS(multiply_async, OPERANDS, ", 0, 0", n, count, a, b, adds)                                                          \
    MULTIPLY_AS(multiply_async_e4m3, "k32.f32.e4m3.e4m3", "", n, count, a, b, adds)
MULTIPLY(8, 4, "%4", "%5", "%6")
MULTIPLY(16, 8, "%8", "%9", "%10")
MULTIPLY(32, 16, "%16", "%17", "%18")
MULTIPLY(64, 32, "%32", "%33", "%34")
MULTIPLY(96, 48, "%48", "%49", "%50")
MULTIPLY(128, 64, "%64", "%65", "%66")
MULTIPLY(192, 96, "%96", "%97", "%98")
#endif

// Descriptor of a matrix in rows of 128 bytes (9.7.15.5.1.2.2): 128-byte swizzle, where piece c of 16 bytes of row r lies at c ^ r % 8 and
// 8 rows take 1024 bytes from a multiple of that on. So 8 threads that copy a row write to all banks once. A start 32 bytes further is
// that of the next instruction's columns.
DEVICE u64 swizzled_matrix(const void *start) {
    const u64 unused_leading = 1, eight_rows = 1024 >> 4, swizzle_128 = 1;
    return (shared_address(start) & 0x3ffff) >> 4 | unused_leading << 16 | eight_rows << 32 | swizzle_128 << 62;
}
