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

// Grid: rows. h[r] = norm(x[rows ? rows[r] : r]); a layer norm if there is an offset, else an RMS norm.
KERNEL_OF(256, 1, norm)
(const float *x, const int *rows, const float *scale, const float *offset, float eps, int hidden, T *h) {
    __shared__ float scratch[32];
    const float *from = x + (u64)(rows ? rows[blockIdx.x] : blockIdx.x) * hidden;
    T *to = h + (u64)blockIdx.x * hidden;
    float mean = 0.0f;
    if (offset) {
        float sum = 0.0f;
        for (int i = threadIdx.x; i < hidden; i += blockDim.x) sum = __fadd_rn(sum, from[i]);
        mean = __fdiv_rn(block_sum(sum, scratch), (float)hidden);
    }
    const float square = deviations(from, hidden, mean, scratch);
    const float factor = __fdiv_rn(1.0f, sqrtf(__fadd_rn(__fdiv_rn(square, (float)hidden), eps)));
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        const float y = __fmul_rn(__fmul_rn(__fsub_rn(from[i], mean), factor), scale[i]);
        to[i] = narrow(offset ? __fadd_rn(y, offset[i]) : y);
    }
}
REGISTER(norm)

// Grid: rows. x[r] += rms_norm(branch[r]).
KERNEL_OF(256, 1, norm_add)
(const float *branch, const float *scale, float eps, int hidden, float *x) {
    __shared__ float scratch[32];
    const float *from = branch + (u64)blockIdx.x * hidden;
    float *to = x + (u64)blockIdx.x * hidden;
    const float square = deviations(from, hidden, 0.0f, scratch);
    const float factor = __fdiv_rn(1.0f, sqrtf(__fadd_rn(__fdiv_rn(square, (float)hidden), eps)));
    for (int i = threadIdx.x; i < hidden; i += blockDim.x)
        to[i] = __fadd_rn(to[i], __fmul_rn(__fmul_rn(from[i], factor), scale[i]));
}
REGISTER(norm_add)

// Grid: rows, columns / 256. x[r, i] += bias[i].
KERNEL_OF(256, 1, add_bias)
(const float *bias, int width, float *x) {
    const int i = blockIdx.y * blockDim.x + threadIdx.x;
    if (i < width) x[(u64)blockIdx.x * width + i] = __fadd_rn(x[(u64)blockIdx.x * width + i], bias[i]);
}
REGISTER(add_bias)

// Grid: tokens, heads / 4 (queries, then keys, then values); a warp a head. Adds the bias, norms and rotates queries and keys,
// writes queries to q[tokens, heads * dim] and keys and values to the cache. `places` is (block * 32 + offset) of each token; the
// angles are tables [positions, half] of cosines and sines, the second pair for sequences that may outgrow the original context.
KERNEL_OF(128, 1, place)
(const T *qkv, const float *bias, const float *query_norm, const float *key_norm, float eps, const float *cosines, const float *sines,
 const float *long_cosines, const float *long_sines, int half, const int *positions, const int *longs, const int *places, int heads,
 int kv_heads, int dim, T *q, T *keys, T *values) {
    const int token = blockIdx.x, lane = threadIdx.x % 32, head = blockIdx.y * 4 + threadIdx.x / 32;
    if (head >= heads + 2 * kv_heads) return;
    const u64 width = (u64)(heads + 2 * kv_heads) * dim;
    const T *from = qkv + token * width + (u64)head * dim;
    const float *b = bias ? bias + head * dim : 0;
    const bool is_query = head < heads, is_value = head >= heads + kv_heads;
    // A thread holds elements lane, lane + 32, ...
    float factor = 1.0f;
    const float *scale = is_value ? 0 : is_query ? query_norm : key_norm;
    if (scale) {
        float square = 0.0f;
        for (int i = lane; i < dim; i += 32) {
            const float x = b ? __fadd_rn(widen(from[i]), b[i]) : widen(from[i]);
            square = __fmaf_rn(x, x, square);
        }
        factor = __fdiv_rn(1.0f, sqrtf(__fadd_rn(__fdiv_rn(warp_sum(square), (float)dim), eps)));
    }
    T *to;
    if (is_query) {
        to = q + ((u64)token * heads + head) * dim;
    } else {
        const int h = is_value ? head - heads - kv_heads : head - heads;
        const int at = places[token];
        to = (is_value ? values : keys) + (((u64)(at / 32) * kv_heads + h) * 32 + at % 32) * dim;
    }
    const int turned = is_value || !cosines ? 0 : half;
    const u64 angle = (u64)positions[token] * half;
    const float *c = (longs[token] ? long_cosines : cosines) + angle, *s = (longs[token] ? long_sines : sines) + angle;
    for (int i = lane; i < dim; i += 32) {
        if (i >= turned && i < 2 * turned) continue;
        float x = b ? __fadd_rn(widen(from[i]), b[i]) : widen(from[i]);
        if (scale) x = __fmul_rn(__fmul_rn(x, factor), scale[i]);
        if (i < turned) {
            const int j = i + turned;
            float y = b ? __fadd_rn(widen(from[j]), b[j]) : widen(from[j]);
            if (scale) y = __fmul_rn(__fmul_rn(y, factor), scale[j]);
            to[i] = narrow(__fsub_rn(__fmul_rn(x, c[i]), __fmul_rn(y, s[i])));
            to[j] = narrow(__fadd_rn(__fmul_rn(y, c[i]), __fmul_rn(x, s[i])));
        } else {
            to[i] = narrow(x);
        }
    }
}
REGISTER(place)

#define SILU 0
#define GELU_TANH 1
#define GELU_ERF 2

DEVICE float activation(int kind, float x) {
    if (kind == SILU) return __fdiv_rn(x, __fadd_rn(1.0f, expf(-x)));
    if (kind == GELU_TANH) {
        const float inner = __fmul_rn(0.7978846f, __fmaf_rn(__fmul_rn(__fmul_rn(x, x), x), 0.044715f, x));
        return __fmul_rn(__fmul_rn(x, 0.5f), __fadd_rn(tanhf(inner), 1.0f));
    }
    return __fmul_rn(__fmul_rn(0.5f, x), __fadd_rn(1.0f, erff(__fmul_rn(x, 0.70710678f))));
}

// Grid: rows, width / 256. out[r, i] = act(x[r, i]) * x[r, width + i], or act(x[r, i]) without a gate; biases first.
KERNEL_OF(256, 1, activate)
(const T *x, const float *bias, int kind, int gated, int width, T *out) {
    const int i = blockIdx.y * blockDim.x + threadIdx.x;
    if (i >= width) return;
    const T *row = x + (u64)blockIdx.x * (gated ? 2 * width : width);
    float y = widen(row[i]);
    if (bias) y = __fadd_rn(y, bias[i]);
    y = activation(kind, y);
    if (gated) {
        float by = widen(row[width + i]);
        if (bias) by = __fadd_rn(by, bias[width + i]);
        y = __fmul_rn(y, by);
    }
    out[(u64)blockIdx.x * width + i] = narrow(y);
}
REGISTER(activate)

// Grid: rows; one warp. The weights of the best `kept` of `count` experts (at most 64), softmax over those; 0 for the others.
KERNEL_OF(32, 1, route)
(const float *logits, int count, int kept, float *weights) {
    const float *row = logits + (u64)blockIdx.x * count;
    float *to = weights + (u64)blockIdx.x * count;
    if (threadIdx.x != 0) return;
    u64 chosen = 0;
    float top = 0.0f, total = 0.0f;
    for (int n = 0; n < kept; n++) {
        int best = -1;
        for (int e = 0; e < count; e++)
            if (!(chosen >> e & 1) && (best < 0 || row[e] > row[best])) best = e;
        if (n == 0) top = row[best];
        chosen |= 1ull << best;
        total = __fadd_rn(total, expf(__fsub_rn(row[best], top)));
    }
    for (int e = 0; e < count; e++) to[e] = chosen >> e & 1 ? __fdiv_rn(expf(__fsub_rn(row[e], top)), total) : 0.0f;
}
REGISTER(route)

// Grid: rows, hidden / 256. x[r] += weights[r, expert] * answer[r]; rows that did not choose the expert stay as they are.
KERNEL_OF(256, 1, add_expert)
(const float *answer, const float *weights, int expert, int count, int hidden, float *x) {
    const int i = blockIdx.y * blockDim.x + threadIdx.x;
    const float w = weights[(u64)blockIdx.x * count + expert];
    if (i >= hidden || w == 0.0f) return;
    const u64 at = (u64)blockIdx.x * hidden + i;
    x[at] = __fmaf_rn(w, answer[at], x[at]);
}
REGISTER(add_expert)

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
