// Products of 8-bit floats (E4M3 of OCP's 8-bit floating point: bias 7, largest value 448, no infinities), for compute capability 8.9 and
// later: PTX ISA, "mma" of shape m16n8k32 and "cvt".

#define LARGEST_E4M3 448.0f

#ifndef EARNEST_TWIN
// Two floats to the nearest codes, ties to even; beyond 448 to 448, what is not a number to 0x7f.
DEVICE u16 to_e4m3_pair(float low, float high) {
    u16 r;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
    return r;
}
// c[16x8] += a[16x32] b[32x8], in f32. Registers hold the bytes that those of multiply_add do.
DEVICE void multiply_add_e4m3(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// Grid: rows. Codes of each row of x [rows, k] and the scale that they are multiplied by: the row's largest value becomes 448. A value that is
// not a number stays one, and an infinity makes the whole row such.
KERNEL_OF(256, 1, quantise_rows)
(const T *x, int k, u8 *codes, float *scales) {
    __shared__ float scratch[32];
    const T *from = x + (u64)blockIdx.x * k;
    float v[8], top = 0.0f;
    for (int i = threadIdx.x * 8; i < k; i += 256 * 8) {
        load_8(from + i, v);
#pragma unroll
        for (int j = 0; j < 8; j++) top = fmaxf(top, fabsf(v[j]));
    }
    // A row of zeros has some scale, too.
    top = fmaxf(block_max(top, scratch), 1e-30f);
    const float by = __fdiv_rn(LARGEST_E4M3, top);
    for (int i = threadIdx.x * 8; i < k; i += 256 * 8) {
        load_8(from + i, v);
        u32x2 packed = {{0, 0}};
#pragma unroll
        for (int j = 0; j < 4; j++)
            packed.v[j / 2] |= (u32)to_e4m3_pair(__fmul_rn(v[2 * j], by), __fmul_rn(v[2 * j + 1], by)) << (j % 2 * 16);
        *(u32x2 *)(codes + (u64)blockIdx.x * k + i) = packed;
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = __fdiv_rn(top, LARGEST_E4M3);
}
REGISTER(quantise_rows)
