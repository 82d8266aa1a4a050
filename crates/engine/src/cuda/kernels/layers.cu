// What lies between the matrix products of a layer.

// Grid: tokens. The residual stream x[tokens, hidden] from the embedding table. A negative id -1 - r is the token that was sampled
// in row r of the step before, which the host does not know yet.
KERNEL_OF(256, 1, embed)
(const u8 *table, int kind, int hidden, const int *ids, const int *sampled, float scale, float *x) {
    const int token = blockIdx.x;
    int id = ids[token];
    if (id < 0) id = sampled[-1 - id];
    const u8 *row = table + (u64)id * row_bytes(kind, hidden);
    for (int at = threadIdx.x * 8; at < hidden; at += blockDim.x * 8) {
        float w[8];
        weights_at(kind, row, hidden, at, w);
        for (int i = 0; i < 8; i++) x[(u64)token * hidden + at + i] = __fmul_rn(w[i], scale);
    }
}
REGISTER(embed)

// Sum of squares of a row's deviations from `mean`, by all threads.
DEVICE float deviations(const float *x, int width, float mean, float *scratch) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        const float d = __fsub_rn(x[i], mean);
        sum = __fmaf_rn(d, d, sum);
    }
    return block_sum(sum, scratch);
}

// Factor of a norm over a row, by all threads, and the row's mean if it is `centred`.
DEVICE float norm_factor(const float *x, int width, int centred, float eps, float &mean, float *scratch) {
    mean = 0.0f;
    if (centred) {
        float sum = 0.0f;
        for (int i = threadIdx.x; i < width; i += blockDim.x) sum = __fadd_rn(sum, x[i]);
        mean = __fdiv_rn(block_sum(sum, scratch), (float)width);
    }
    const float square = deviations(x, width, mean, scratch);
    return __fdiv_rn(1.0f, sqrtf(__fadd_rn(__fdiv_rn(square, (float)width), eps)));
}

DEVICE float normed(float x, float mean, float factor, float scale) { return __fmul_rn(__fmul_rn(__fsub_rn(x, mean), factor), scale); }

// Grid: rows. h[r] = norm(x[rows ? rows[r] : r]): a layer norm if `centred`, else an RMS norm; the row itself without a scale.
KERNEL_OF(256, 1, norm)
(const float *x, const int *rows, const float *scale, const float *offset, int centred, float eps, int hidden, T *h) {
    __shared__ float scratch[32];
    const float *from = x + (u64)(rows ? rows[blockIdx.x] : blockIdx.x) * hidden;
    T *to = h + (u64)blockIdx.x * hidden;
    float mean = 0.0f, factor = 1.0f;
    if (scale) factor = norm_factor(from, hidden, centred, eps, mean, scratch);
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        const float y = scale ? normed(from[i], mean, factor, scale[i]) : from[i];
        to[i] = narrow(offset ? __fadd_rn(y, offset[i]) : y);
    }
}
REGISTER(norm)

// Grid: rows. x[r] += by * rms_norm(branch[r]), or the branch as it is without a scale.
KERNEL_OF(256, 1, join)
(const float *branch, const float *scale, float eps, float by, int hidden, float *x) {
    __shared__ float scratch[32];
    const float *from = branch + (u64)blockIdx.x * hidden;
    float *to = x + (u64)blockIdx.x * hidden;
    float mean = 0.0f, factor = 1.0f;
    if (scale) factor = norm_factor(from, hidden, 0, eps, mean, scratch);
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        const float y = scale ? normed(from[i], 0.0f, factor, scale[i]) : from[i];
        to[i] = __fadd_rn(to[i], __fmul_rn(y, by));
    }
}
REGISTER(join)

// Grid: rows; shared memory for a row. `join` (where there is a branch, else the bias is added to x), then `norm`, with each row read
// once and in 16 bytes. Sums are those of `norm`: a thread adds elements threadIdx.x, threadIdx.x + 256, ...
KERNEL_OF(256, 1, join_norm)
(const float *branch, const float *bias, const float *branch_scale, float by, const float *scale, const float *offset, int centred,
 float eps, int hidden, float *x, T *h) {
    DYNAMIC_SHARED(memory);
    __shared__ float scratch[32];
    float *row = (float *)memory;
    float *stream = x + (u64)blockIdx.x * hidden;
    const float *from = branch ? branch + (u64)blockIdx.x * hidden : stream;
    for (int i = threadIdx.x * 4; i < hidden; i += blockDim.x * 4) {
        u32x4 raw = *(const u32x4 *)(from + i);
        if (bias)
            for (int j = 0; j < 4; j++) raw.v[j] = __float_as_uint(__fadd_rn(__uint_as_float(raw.v[j]), bias[i + j]));
        *(u32x4 *)(row + i) = raw;
    }
    __syncthreads();
    float mean = 0.0f, factor = 1.0f;
    if (branch) {
        if (branch_scale) factor = norm_factor(row, hidden, 0, eps, mean, scratch);
        // A thread reads and writes its own elements.
        __syncthreads();
        for (int i = threadIdx.x * 4; i < hidden; i += blockDim.x * 4) {
            u32x4 raw = *(const u32x4 *)(stream + i);
            for (int j = 0; j < 4; j++) {
                const float y = branch_scale ? normed(row[i + j], 0.0f, factor, branch_scale[i + j]) : row[i + j];
                row[i + j] = __fadd_rn(__uint_as_float(raw.v[j]), __fmul_rn(y, by));
            }
        }
        __syncthreads();
    }
    if (branch || bias)
        for (int i = threadIdx.x * 4; i < hidden; i += blockDim.x * 4) *(u32x4 *)(stream + i) = *(const u32x4 *)(row + i);
    factor = 1.0f;
    if (scale) factor = norm_factor(row, hidden, centred, eps, mean, scratch);
    T *to = h + (u64)blockIdx.x * hidden;
    for (int i = threadIdx.x * 8; i < hidden; i += blockDim.x * 8) {
        float y[8];
        for (int j = 0; j < 8; j++) {
            y[j] = scale ? normed(row[i + j], mean, factor, scale[i + j]) : row[i + j];
            if (offset) y[j] = __fadd_rn(y[j], offset[i + j]);
        }
        store_8(to + i, y);
    }
}
REGISTER(join_norm)

// Grid: rows, columns / 256. x[r, i] += bias[i].
KERNEL_OF(256, 1, add_bias)
(const float *bias, int width, float *x) {
    const int i = blockIdx.y * blockDim.x + threadIdx.x;
    if (i < width) x[(u64)blockIdx.x * width + i] = __fadd_rn(x[(u64)blockIdx.x * width + i], bias[i]);
}
REGISTER(add_bias)

// Grid: tokens, 2 (queries, keys). The factors of norms over all heads of a token's queries and of its keys.
KERNEL_OF(256, 1, width_factors)
(const T *qkv, const float *bias, int queries, int keys, float eps, float *factors) {
    __shared__ float scratch[32];
    const int width = blockIdx.y ? keys : queries, first = blockIdx.y ? queries : 0;
    const T *row = qkv + (u64)blockIdx.x * (queries + 2 * keys) + first;
    float square = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        const float x = bias ? __fadd_rn(widen(row[i]), bias[first + i]) : widen(row[i]);
        square = __fmaf_rn(x, x, square);
    }
    square = block_sum(square, scratch);
    if (threadIdx.x == 0)
        factors[blockIdx.x * 2 + blockIdx.y] = __fdiv_rn(1.0f, sqrtf(__fadd_rn(__fdiv_rn(square, (float)width), eps)));
}
REGISTER(width_factors)

// Norms of queries and keys: over each head, over all heads, over each head after it is rotated, the same without a weight.
#define NORM_HEAD 1
#define NORM_WIDTH 2
#define NORM_AFTER 3
#define NORM_PLAIN_AFTER 4

// Grid: tokens, heads / 4 (queries, then keys, then values); a warp a head. Adds the bias, norms and rotates queries and keys,
// writes queries to q[tokens, heads * dim] and keys and values to the cache. `places` is (block * 32 + offset) of each token; the
// angles are tables [positions, half] of cosines and sines, the second pair for sequences that may outgrow the original context.
// `growth` is a factor on each token's queries.
KERNEL_OF(128, 1, place)
(const T *qkv, const float *bias, int norms, const float *query_norm, const float *key_norm, const float *width_factors, float eps,
 const float *cosines, const float *sines, const float *long_cosines, const float *long_sines, int half, const int *positions, const int *longs,
 const int *places, const float *growth, int heads, int kv_heads, int dim, T *q, T *keys, T *values) {
    const int token = blockIdx.x, lane = threadIdx.x % 32, head = blockIdx.y * 4 + threadIdx.x / 32;
    if (head >= heads + 2 * kv_heads) return;
    const u64 width = (u64)(heads + 2 * kv_heads) * dim;
    const T *from = qkv + token * width + (u64)head * dim;
    const float *b = bias ? bias + head * dim : 0;
    const bool is_query = head < heads, is_value = head >= heads + kv_heads;
    const int own = is_query ? head : is_value ? head - heads - kv_heads : head - heads;
    const float *scale = is_value ? 0 : is_query ? query_norm : key_norm;
    const bool before = scale && (norms == NORM_HEAD || norms == NORM_WIDTH);
    // A thread holds elements lane, lane + 32, ...
    float factor = 1.0f;
    if (before && norms == NORM_HEAD) {
        float square = 0.0f;
        for (int i = lane; i < dim; i += 32) {
            const float x = b ? __fadd_rn(widen(from[i]), b[i]) : widen(from[i]);
            square = __fmaf_rn(x, x, square);
        }
        factor = __fdiv_rn(1.0f, sqrtf(__fadd_rn(__fdiv_rn(warp_sum(square), (float)dim), eps)));
    } else if (before) {
        factor = width_factors[token * 2 + (is_query ? 0 : 1)];
        scale += own * dim;
    }
    const auto projected = [&](int i) {
        const float x = b ? __fadd_rn(widen(from[i]), b[i]) : widen(from[i]);
        return before ? __fmul_rn(__fmul_rn(x, factor), scale[i]) : x;
    };
    const int turned = is_value || !cosines ? 0 : half;
    const u64 angle = (u64)positions[token] * half;
    const float *c = (longs[token] ? long_cosines : cosines) + angle, *s = (longs[token] ? long_sines : sines) + angle;
    const auto rotated = [&](int i) {
        if (i >= 2 * turned) return projected(i);
        if (i < turned) return __fsub_rn(__fmul_rn(projected(i), c[i]), __fmul_rn(projected(i + turned), s[i]));
        return __fadd_rn(__fmul_rn(projected(i), c[i - turned]), __fmul_rn(projected(i - turned), s[i - turned]));
    };
    const bool after = !is_value && ((norms == NORM_AFTER && scale) || (norms == NORM_PLAIN_AFTER && cosines));
    if (after) {
        float square = 0.0f;
        for (int i = lane; i < dim; i += 32) {
            const float x = rotated(i);
            square = __fmaf_rn(x, x, square);
        }
        factor = __fdiv_rn(1.0f, sqrtf(__fadd_rn(__fdiv_rn(warp_sum(square), (float)dim), eps)));
    }
    T *to;
    if (is_query) {
        to = q + ((u64)token * heads + head) * dim;
    } else {
        const int at = places[token];
        to = (is_value ? values : keys) + (((u64)(at / 32) * kv_heads + own) * 32 + at % 32) * dim;
    }
    const float grown = is_query && growth ? growth[token] : 1.0f;
    // Eight elements at a time, in 16 bytes, where all of them are rotated by the same rule.
    if (!after && turned % 8 == 0) {
        for (int i = lane * 8; i < dim; i += 256) {
            float x[8];
            load_8(from + i, x);
            const auto project = [&](float(&y)[8], int at) {
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    if (b) y[j] = __fadd_rn(y[j], b[at + j]);
                    if (before) y[j] = __fmul_rn(__fmul_rn(y[j], factor), scale[at + j]);
                }
            };
            project(x, i);
            if (i < 2 * turned) {
                const bool low = i < turned;
                const int other = low ? i + turned : i - turned, at = low ? i : other;
                float y[8];
                load_8(from + other, y);
                project(y, other);
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const float straight = __fmul_rn(x[j], c[at + j]), across = __fmul_rn(y[j], s[at + j]);
                    x[j] = low ? __fsub_rn(straight, across) : __fadd_rn(straight, across);
                }
            }
#pragma unroll
            for (int j = 0; j < 8; j++) x[j] = __fmul_rn(x[j], grown);
            store_8(to + i, x);
        }
        return;
    }
    for (int i = lane; i < dim; i += 32) {
        float x = rotated(i);
        if (after) x = __fmul_rn(x, factor);
        if (after && norms == NORM_AFTER) x = __fmul_rn(x, scale[i]);
        to[i] = narrow(__fmul_rn(x, grown));
    }
}
REGISTER(place)

#define SILU 0
#define GELU_TANH 1
#define GELU_ERF 2
#define CLAMPED_SWIGLU 3

DEVICE float activation(int kind, float x) {
    if (kind == SILU) return __fdiv_rn(x, __fadd_rn(1.0f, expf(-x)));
    if (kind == GELU_TANH) {
        const float inner = __fmul_rn(0.7978846f, __fmaf_rn(__fmul_rn(__fmul_rn(x, x), x), 0.044715f, x));
        return __fmul_rn(__fmul_rn(x, 0.5f), __fadd_rn(tanhf(inner), 1.0f));
    }
    return __fmul_rn(__fmul_rn(0.5f, x), __fadd_rn(1.0f, erff(__fmul_rn(x, 0.70710678f))));
}

// An activation and its parameters.
struct Gate {
    int kind;
    // Of a clamped SwiGLU.
    float alpha, limit;
};

// act(x) * by
DEVICE float gate(const Gate &g, float x, float by) {
    if (g.kind != CLAMPED_SWIGLU) return __fmul_rn(activation(g.kind, x), by);
    // What is not a number stays, so that it is noticed.
    x = x > g.limit ? g.limit : x;
    by = by > g.limit ? g.limit : by < -g.limit ? -g.limit : by;
    const float y = __fdiv_rn(x, __fadd_rn(1.0f, expf(-__fmul_rn(g.alpha, x))));
    return __fmul_rn(__fadd_rn(by, 1.0f), y);
}

// Grid: rows, width / 2048; eight elements a thread. out[r, i] = act(x[r, i]) * x[r, width + i], or act(x[r, i]) without a gate; biases first.
KERNEL_OF(256, 1, activate)
(const T *x, const float *bias, int kind, float alpha, float limit, int gated, int width, T *out) {
    const Gate g = {kind, alpha, limit};
    const int i = (blockIdx.y * blockDim.x + threadIdx.x) * 8;
    if (i >= width) return;
    const T *row = x + (u64)blockIdx.x * (gated ? 2 * width : width);
    float y[8], by[8];
    load_8(row + i, y);
    if (gated) load_8(row + width + i, by);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (bias) {
            y[j] = __fadd_rn(y[j], bias[i + j]);
            if (gated) by[j] = __fadd_rn(by[j], bias[width + i + j]);
        }
        y[j] = gated ? gate(g, y[j], by[j]) : activation(kind, y[j]);
    }
    store_8(out + (u64)blockIdx.x * width + i, y);
}
REGISTER(activate)

// Grid: copies, layers, 2 (keys, values). Copies the first positions of a block: triples (from, to, positions).
KERNEL_OF(256, 1, copy_blocks)
(const int *copies, T *keys, T *values, u64 layer_elements, int kv_heads, int dim) {
    const int *copy = copies + blockIdx.x * 3;
    T *cache = (blockIdx.z ? values : keys) + blockIdx.y * layer_elements;
    const u64 block = (u64)kv_heads * 32 * dim;
    const int count = copy[2] * dim;
    for (int head = 0; head < kv_heads; head++) {
        const T *from = cache + copy[0] * block + (u64)head * 32 * dim;
        T *to = cache + copy[1] * block + (u64)head * 32 * dim;
        for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
    }
}
REGISTER(copy_blocks)
