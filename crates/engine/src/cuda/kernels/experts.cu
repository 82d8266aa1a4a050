// Mixtures of experts: the choice of each token's experts, the order in which their rows are computed, and the sum of their answers.
//
// A pair is a token and one of its experts: number (token * kept + j), where a token's experts ascend with j. Pairs are sorted by
// expert and then by number, so a row's place depends on nothing but the choices, and an answer's bits on nothing but its token.

#define SOFTMAX 0
#define SIGMOID 1
#define SCALED_INPUT 2
// Most experts, and most of a token.
#define MOST_EXPERTS 1024
#define MOST_CHOSEN 32

DEVICE float sigmoid(float x) { return __fdiv_rn(1.0f, __fadd_rn(1.0f, expf(-x))); }

// The larger value, the lower index on ties; an index below 0 is no candidate.
DEVICE void better(float &value, int &index, float other, int other_index) {
    if (other_index >= 0 && (index < 0 || other > value || (other == value && other_index < index))) {
        value = other;
        index = other_index;
    }
}

// Grid: tokens; a warp. The best `kept` experts of each token and their weights. With sigmoids the choice is by score plus bias, among
// the experts of the `kept_groups` best groups, by the sum of a group's two best.
KERNEL_OF(32, 1, route)
(const float *logits, const float *bias, const float *choice_bias, int count, int kept, int kind, int normalised, int groups, int kept_groups,
 float scale, int *chosen, float *weights) {
    __shared__ float values[MOST_EXPERTS], sums[32];
    __shared__ int picked[MOST_CHOSEN];
    const int lane = threadIdx.x;
    const float *row = logits + (u64)blockIdx.x * count;
    const auto logit = [&](int e) { return bias ? __fadd_rn(row[e], bias[e]) : row[e]; };
    for (int e = lane; e < count; e += 32)
        values[e] = kind == SIGMOID ? __fadd_rn(sigmoid(logit(e)), choice_bias[e]) : logit(e);
    __syncthreads();
    const int size = count / groups;
    if (groups > 1) {
        float best[2] = {-INFINITE, -INFINITE};
        if (lane < groups)
            for (int e = lane * size; e < (lane + 1) * size; e++) {
                if (values[e] > best[0]) {
                    best[1] = best[0];
                    best[0] = values[e];
                } else if (values[e] > best[1]) {
                    best[1] = values[e];
                }
            }
        sums[lane] = size > 1 ? __fadd_rn(best[0], best[1]) : best[0];
        __syncthreads();
    }
    // A lane has experts lane, lane + 32, ...; a bit for each that is out.
    u32 out = 0;
    for (int i = 0; lane + 32 * i < count; i++) {
        if (groups == 1) break;
        const int group = (lane + 32 * i) / size;
        int ahead = 0;
        for (int other = 0; other < groups; other++)
            ahead += sums[other] > sums[group] || (sums[other] == sums[group] && other < group);
        if (ahead >= kept_groups) out |= 1u << i;
    }
    for (int n = 0; n < kept; n++) {
        float value = -INFINITE;
        int index = -1;
        for (int i = 0; lane + 32 * i < count; i++)
            if (!(out >> i & 1)) better(value, index, values[lane + 32 * i], lane + 32 * i);
        for (int step = 16; step > 0; step >>= 1) {
            const float other = __shfl_xor_sync(0xffffffffu, value, step);
            const int other_index = __shfl_xor_sync(0xffffffffu, index, step);
            better(value, index, other, other_index);
        }
        // What is not a number compares with nothing, and lanes may differ: the first one decides. Some expert there always is.
        if (lane == 0) picked[n] = max(index, 0);
        __syncthreads();
        if (picked[n] % 32 == lane) out |= 1u << (picked[n] / 32);
    }
    float total = 1.0f;
    const float top = logit(picked[0]);
    if (kind == SOFTMAX && normalised) {
        total = 0.0f;
        for (int n = 0; n < kept; n++) total = __fadd_rn(total, expf(__fsub_rn(logit(picked[n]), top)));
    } else if (kind == SOFTMAX) {
        float part = 0.0f;
        for (int e = lane; e < count; e += 32) part = __fadd_rn(part, expf(__fsub_rn(logit(e), top)));
        total = warp_sum(part);
    } else if (kind == SIGMOID && normalised) {
        total = 0.0f;
        for (int n = 0; n < kept; n++) total = __fadd_rn(total, sigmoid(logit(picked[n])));
        total = __fadd_rn(total, 1e-20f);
    }
    if (lane >= kept) return;
    int rank = 0;
    for (int n = 0; n < kept; n++) rank += picked[n] < picked[lane] || (picked[n] == picked[lane] && n < lane);
    const u64 pair = (u64)blockIdx.x * kept + rank;
    const float x = logit(picked[lane]);
    chosen[pair] = picked[lane];
    weights[pair] = kind == SOFTMAX ? __fdiv_rn(expf(__fsub_rn(x, top)), total) : kind == SIGMOID ? __fmul_rn(__fdiv_rn(sigmoid(x), total), scale) : sigmoid(x);
}
REGISTER(route)

// Grid: experts. Sorts pairs by expert, then by number: `order` has the pair of each row, `places` the row of each pair, `starts` the first row of
// each expert and the number of rows. A warp has the pairs of one range, of which it reads 32 at a time.
KERNEL_OF(256, 1, sort_pairs)
(const int *chosen, int pairs, int *starts, int *order, int *places) {
    __shared__ int lower[8], equal[8];
    const int expert = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int each = (pairs + 255) / 256 * 32, first = min(warp * each, pairs), end = min(first + each, pairs);
    int less = 0, mine = 0;
    for (int i = first + lane; i < end; i += 32) {
        less += chosen[i] < expert;
        mine += chosen[i] == expert;
    }
    for (int step = 16; step > 0; step >>= 1) {
        less += __shfl_xor_sync(0xffffffffu, less, step);
        mine += __shfl_xor_sync(0xffffffffu, mine, step);
    }
    if (lane == 0) {
        lower[warp] = less;
        equal[warp] = mine;
    }
    __syncthreads();
    int at = 0;
    for (int i = 0; i < 8; i++) at += lower[i];
    if (threadIdx.x == 0) {
        starts[expert] = at;
        if (expert == gridDim.x - 1) starts[gridDim.x] = pairs;
    }
    for (int i = 0; i < warp; i++) at += equal[i];
    for (int i = first; i < end; i += 32) {
        const bool is_mine = i + lane < end && chosen[i + lane] == expert;
        const u32 all = __ballot_sync(0xffffffffu, is_mine);
        if (is_mine) {
            const int row = at + __popc(all & ((1u << lane) - 1));
            order[row] = i + lane;
            places[i + lane] = row;
        }
        at += __popc(all);
    }
}
REGISTER(sort_pairs)

// One block. Cuts each expert's rows into tiles of at most `rows`: (expert, first row, end); expert -1 beyond the last of `most` tiles.
KERNEL_OF(256, 1, expert_tiles)
(const int *starts, int experts, int rows, int most, int *tiles) {
    __shared__ int counts[MOST_EXPERTS];
    for (int e = threadIdx.x; e < experts; e += 256) counts[e] = (starts[e + 1] - starts[e] + rows - 1) / rows;
    __syncthreads();
    for (int e = threadIdx.x; e < experts; e += 256) {
        int at = 0;
        for (int i = 0; i < e; i++) at += counts[i];
        for (int j = 0; j < counts[e]; j++) {
            int *tile = tiles + (at + j) * 3;
            tile[0] = e;
            tile[1] = starts[e] + j * rows;
            tile[2] = min(tile[1] + rows, starts[e + 1]);
        }
    }
    int total = 0;
    for (int e = 0; e < experts; e++) total += counts[e];
    for (int i = total + threadIdx.x; i < most; i += 256) tiles[i * 3] = -1;
}
REGISTER(expert_tiles)

// Grid: rows in their sorted order, width / 2048. `activate` of experts' rows; `scales` (none: 1) are factors on each pair's input, which the
// products before were given without.
KERNEL_OF(256, 1, activate_experts)
(const T *x, const float *bias, const float *scales, const int *order, const int *chosen, int kind, float alpha, float limit, int gated,
 int width, T *out) {
    const Gate g = {kind, alpha, limit};
    const int i = (blockIdx.y * blockDim.x + threadIdx.x) * 8, row = blockIdx.x;
    if (i >= width) return;
    const int pair = order[row], all = gated ? 2 * width : width;
    const T *from = x + (u64)row * all;
    const float *b = bias ? bias + (u64)chosen[pair] * all : 0;
    const float by_input = scales ? scales[pair] : 1.0f;
    float y[8], by[8];
    load_8(from + i, y);
    if (gated) load_8(from + width + i, by);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        y[j] = __fmul_rn(y[j], by_input);
        if (b) y[j] = __fadd_rn(y[j], b[i + j]);
        if (gated) {
            by[j] = __fmul_rn(by[j], by_input);
            if (b) by[j] = __fadd_rn(by[j], b[width + i + j]);
        }
        y[j] = gated ? gate(g, y[j], by[j]) : activation(kind, y[j]);
    }
    store_8(out + (u64)row * width + i, y);
}
REGISTER(activate_experts)

// Grid: tokens, hidden / 256. to[t] (+)= the sum of the weighted answers of a token's experts, in the order of the experts.
KERNEL_OF(256, 1, combine)
(const float *answers, const float *bias, const int *places, const int *chosen, const float *weights, int kept, int hidden, int add,
 float *to) {
    const int i = blockIdx.y * blockDim.x + threadIdx.x;
    if (i >= hidden) return;
    float sum = 0.0f;
    for (int j = 0; j < kept; j++) {
        const u64 pair = (u64)blockIdx.x * kept + j;
        float answer = answers[(u64)places[pair] * hidden + i];
        if (bias) answer = __fadd_rn(answer, bias[(u64)chosen[pair] * hidden + i]);
        sum = __fmaf_rn(weights ? weights[pair] : 1.0f, answer, sum);
    }
    const u64 at = (u64)blockIdx.x * hidden + i;
    to[at] = add ? __fadd_rn(to[at], sum) : sum;
}
REGISTER(combine)
