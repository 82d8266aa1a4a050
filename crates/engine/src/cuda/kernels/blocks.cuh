// Quantised weights as they lie on the device, eight at a time.
//
// The blocks are ggml's, with two changes that make loads aligned: a row of Q8_0 has its numbers first (k bytes) and then its scales
// (k / 32 f16), padded to 16 bytes; a block of Q6_K is padded from 210 to 224 bytes. A row of E4M3 has its k codes, then a scale in f32
// for each 128 of them, padded to 16 bytes.

#define KIND_DENSE 0
#define KIND_Q8_0 1
#define KIND_Q4K 2
#define KIND_Q5K 3
#define KIND_Q6K 4
#define KIND_E4M3 5

// Bytes of a row of k weights.
DEVICE u64 row_bytes(int kind, int k) {
    switch (kind) {
    case KIND_Q8_0: return ((u64)k + k / 32 * 2 + 15) / 16 * 16;
    case KIND_Q4K: return (u64)k / 256 * 144;
    case KIND_Q5K: return (u64)k / 256 * 176;
    case KIND_Q6K: return (u64)k / 256 * 224;
    case KIND_E4M3: return (u64)k + ((k + 127) / 128 * 4 + 15) / 16 * 16;
    default: return (u64)k * sizeof(T);
    }
}

// What of a row is needed for the weights at..at + 8, as it is in memory.
struct Raw {
    u32x2 low, high;
    // Scale and minimum (of the block), scales (of sub-blocks).
    u32 scale, minimum, sub;
};

// The scale and minimum of sub-block j of Q4_K and Q5_K: twelve bytes hold eight pairs of six bits.
DEVICE u32 sub_scales(const u8 *q, int j) {
    u32 scale, minimum;
    if (j < 4) {
        scale = q[j] & 63;
        minimum = q[j + 4] & 63;
    } else {
        scale = (q[j + 4] & 15) | ((q[j - 4] >> 6) << 4);
        minimum = (q[j + 4] >> 4) | ((q[j] >> 6) << 4);
    }
    return scale | (minimum << 8);
}

template <int KIND> DEVICE Raw fetch(const u8 *row, int k, int at) {
    Raw raw;
    raw.high.v[0] = raw.high.v[1] = 0;
    raw.minimum = raw.sub = 0;
    if (KIND == KIND_Q8_0) {
        raw.low = *(const u32x2 *)(row + at);
        raw.scale = *(const u16 *)(row + k + at / 32 * 2);
    } else if (KIND == KIND_Q4K || KIND == KIND_Q5K) {
        const u8 *block = row + at / 256 * (KIND == KIND_Q4K ? 144 : 176);
        const int in = at % 256, l = in % 32;
        const u32 scales = *(const u32 *)block;
        raw.scale = scales & 0xffff;
        raw.minimum = scales >> 16;
        raw.sub = sub_scales(block + 4, in / 32);
        // 64 weights in 32 bytes: the first half in the low four bits.
        raw.low = *(const u32x2 *)(block + (KIND == KIND_Q4K ? 16 : 48) + in / 64 * 32 + l);
        if (KIND == KIND_Q5K) raw.high = *(const u32x2 *)(block + 16 + l);
    } else if (KIND == KIND_Q6K) {
        const u8 *block = row + (u64)at / 256 * 224;
        const int half = at % 256 / 128, in = at % 128;
        raw.low = *(const u32x2 *)(block + half * 64 + in % 64);
        raw.high = *(const u32x2 *)(block + 128 + half * 32 + in % 32);
        raw.sub = block[192 + half * 8 + in / 16];
        raw.scale = *(const u16 *)(block + 208);
    }
    return raw;
}

// The eight weights.
template <int KIND> DEVICE void expand(const Raw &raw, int at, float (&w)[8]) {
    const float d = from_f16_bits((u16)raw.scale);
    if (KIND == KIND_Q8_0) {
#pragma unroll
        for (int i = 0; i < 8; i++) w[i] = __fmul_rn(d, (float)(i8)(raw.low.v[i / 4] >> (i % 4 * 8)));
    } else if (KIND == KIND_Q4K || KIND == KIND_Q5K) {
        const int sub = at % 256 / 32;
        const float scale = __fmul_rn(d, (float)(raw.sub & 255));
        const float minimum = __fmul_rn(from_f16_bits((u16)raw.minimum), (float)(raw.sub >> 8));
#pragma unroll
        for (int i = 0; i < 8; i++) {
            u32 q = (raw.low.v[i / 4] >> (i % 4 * 8 + sub % 2 * 4)) & 15;
            if (KIND == KIND_Q5K) q |= ((raw.high.v[i / 4] >> (i % 4 * 8 + sub)) & 1) << 4;
            // Not fused: the reference multiplies, then subtracts.
            w[i] = __fsub_rn(__fmul_rn(scale, (float)q), minimum);
        }
    } else if (KIND == KIND_Q6K) {
        const int quarter = at % 128 / 32;
        const float scale = __fmul_rn(d, (float)(i8)raw.sub);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const u32 low = (raw.low.v[i / 4] >> (i % 4 * 8 + quarter / 2 * 4)) & 15;
            const u32 high = (raw.high.v[i / 4] >> (i % 4 * 8 + quarter * 2)) & 3;
            w[i] = __fmul_rn(scale, (float)((int)(low | (high << 4)) - 32));
        }
    }
}

DEVICE void weights_at(int kind, const u8 *row, int k, int at, float (&w)[8]) {
    switch (kind) {
    case KIND_Q8_0: return expand<KIND_Q8_0>(fetch<KIND_Q8_0>(row, k, at), at, w);
    case KIND_Q4K: return expand<KIND_Q4K>(fetch<KIND_Q4K>(row, k, at), at, w);
    case KIND_Q5K: return expand<KIND_Q5K>(fetch<KIND_Q5K>(row, k, at), at, w);
    case KIND_Q6K: return expand<KIND_Q6K>(fetch<KIND_Q6K>(row, k, at), at, w);
    default:
        for (int i = 0; i < 8; i++) w[i] = widen(((const T *)row)[at + i]);
    }
}
