// Attention over the paged cache, for prompt pieces and decoding tokens alike.
//
// Positions are cut into parts of PART, aligned to position 0. For a query row (a token and a head) each part gives a partial
// result (maximum, sum, weighted values), and the parts' results are folded from left to right. What a part gives and how parts
// are folded is the same arithmetic in every kernel here, so neither the shape of a step, nor who shares a prefix, nor how the
// work is split over the device can change a bit:
//   attend_tall   many rows that read the same keys: prompt pieces, all readers of a shared prefix
//   attend_wide   16 rows: the heads of a decoding token, or of few; eight warps share the keys
//   attend_merge  folds the results that several items gave for a row
// With f32 elements there are no tensor cores of that precision, and attend_plain stands in for both.
//
// An item is eight ints: first token, first row, rows, offset into the tables, first part, end of parts, length, state.
// Row r of an item is token (first token + r / group), head (kv head * group + r % group). Keys at `length` and beyond are not
// there yet. With state -1 the item writes the output; with a state of 0 or more it writes what must be folded, at slot (state + token -
// first token); with a state below -1 it goes on from what an earlier launch left at slot (-2 - state + token - first token), and writes the output.
// The items of a row: one from part 0 over any number of parts, the others over one part each, or one that goes on over all the others.

#define PART 128
#define BLOCK 32
#define PAD 8
// Widest supported head that rows of shared memory are laid out for: the model's own, rounded up to 32.
#ifndef HEAD
#define HEAD 128
#endif

struct Item {
    int token, first_row, rows, table, begin, end, length, state;
};

struct Shape {
    // Of a head, as it is in memory (a multiple of 8), heads of a key, key heads.
    int dim, group, kv_heads;
    float scale, softcap;
    // 0 for none: positions that are seen, positions of a chunk.
    int window, chunk;
};

#define LOG2E 1.4426950408889634f

DEVICE float exponential(float x) {
#if ELEMENT == 0
    return exp2f(x);
#else
    return exp2_fast(x);
#endif
}

// A finite maximum for exponents when nothing is visible.
DEVICE float anchor(float m) { return m == -INFINITE ? 0.0f : m; }

// First position that a query sees.
DEVICE int first_seen(int position, const Shape &s) {
    int first = s.window == 0 ? 0 : max(0, position - s.window + 1);
    if (s.chunk != 0) first = max(first, position - position % s.chunk);
    return first;
}

// Score to base-2 logit; masked ones are minus infinity.
DEVICE float logit(float score, const Shape &s, int key, int position, int first, float slope) {
    float x = __fmul_rn(score, s.scale);
    if (s.softcap > 0.0f) x = __fmul_rn(s.softcap, tanhf(__fdiv_rn(x, s.softcap)));
    x = __fmaf_rn(-slope, (float)(position - key), x);
    return key <= position && key >= first ? __fmul_rn(x, LOG2E) : -INFINITE;
}

// True if a row sees every key of a part and its scores are scaled only: the same bits with less work than `logit` takes.
DEVICE bool is_plain(const Shape &s, int part, int position, int first, float slope) {
    return s.softcap <= 0.0f && slope == 0.0f && first <= part * PART && position >= part * PART + PART - 1;
}

// First part that any of the item's rows sees: what lies before is masked for all, and folding it would change nothing.
DEVICE int first_part(const Item &item, const int *positions, const Shape &s) {
    if (s.window == 0 && s.chunk == 0) return item.begin;
    int lowest = 0x7fffffff;
    const int last = (item.first_row + item.rows - 1) / s.group;
    for (int t = item.first_row / s.group; t <= last; t++) lowest = min(lowest, first_seen(positions[item.token + t], s));
    const int part = lowest / PART;
    // An item must give something, if only a result that changes nothing.
    return min(max(item.begin, part), item.end - 1);
}

// Factors of the result so far and of the part's, and the new maximum.
DEVICE void fold_factors(float &m, float part_m, float &mine, float &parts) {
    const float top = fmaxf(m, part_m), at = anchor(top);
    mine = exponential(m - at);
    parts = exponential(part_m - at);
    m = top;
}
DEVICE float fold(float x, float mine, float part_x, float parts) { return __fmaf_rn(x, mine, __fmul_rn(part_x, parts)); }

// Folds a head's sink, a logit without a value, into the sum; the factor on the weighted values.
DEVICE float fold_sink(const float *sinks, int head, float m, float &sum) {
    if (!sinks) return 1.0f;
    float mine, parts;
    fold_factors(m, __fmul_rn(sinks[head], LOG2E), mine, parts);
    sum = fold(sum, mine, 1.0f, parts);
    return mine;
}

// State of row r of an item at a slot: weighted values [dim], maximum, sum.
DEVICE u64 state_at(const Item &item, int slot, int r, int head, const Shape &s) {
    const int flat = item.first_row + r;
    const u64 heads = (u64)s.kv_heads * s.group, h = head * s.group + flat % s.group;
    return ((u64)(slot + flat / s.group) * heads + h) * (s.dim + 2);
}

#if ELEMENT != 0

#define ROW (HEAD + PAD)
#if HEAD > 192
#define TALL_WARPS 2
#else
#define TALL_WARPS 4
#endif
#define TALL_ROWS (16 * TALL_WARPS)

// Starts copying PART positions of keys or values of a part to shared memory [PART][ROW], zeros beyond `length`. By all THREADS of a block.
template <int THREADS> DEVICE void copy_part(T *to, const T *cache, const int *table, int part, int length, int head, const Shape &s) {
    // 16 bytes are a chunk. Threads of a row of chunks copy a position, all of them `step` positions at a time.
    const int chunks = HEAD / 8, step = THREADS / chunks;
    if (THREADS % chunks == 0 && BLOCK % step == 0) {
        // A position's block is that of `own`, a multiple of `step` before: the blocks of a part are looked up once, not for each copy.
        const int own = threadIdx.x / chunks, d = threadIdx.x % chunks * 8, left = length - part * PART - own;
        const u64 row = (u64)s.kv_heads * BLOCK * s.dim, in = (u64)(head * BLOCK + own) * s.dim + d;
        T *at = to + own * ROW + d;
        u64 blocks[PART / BLOCK];
#pragma unroll
        for (int b = 0; b < PART / BLOCK; b++) blocks[b] = left > b * BLOCK - own ? (u64)table[part * (PART / BLOCK) + b] * row + in : 0;
#pragma unroll
        for (int b = 0; b < PART / BLOCK; b++)
#pragma unroll
            for (int i = 0; i < BLOCK / step; i++) {
                const int offset = b * BLOCK + i * step;
                const bool valid = offset < left && d < s.dim;
                copy_async(at + offset * ROW, valid ? cache + blocks[b] + i * step * s.dim : cache, valid);
            }
    } else {
        for (int i = threadIdx.x; i < PART * chunks; i += THREADS) {
            const int offset = i / chunks, d = i % chunks * 8;
            const int position = part * PART + offset;
            const bool valid = position < length && d < s.dim;
            const T *from = cache;
            if (valid) {
                const u64 block = (u64)table[position / BLOCK];
                from = cache + ((block * s.kv_heads + head) * BLOCK + position % BLOCK) * s.dim + d;
            }
            copy_async(to + offset * ROW + d, from, valid);
        }
    }
    commit_copies();
}

// The item's queries to shared memory [rows, ROW], zeros for rows that are not there.
DEVICE void load_queries(T *to, int rows, const T *queries, const Item &item, int head, const Shape &s) {
    const int chunks = HEAD / 8;
    const u64 width = (u64)s.kv_heads * s.group * s.dim;
    for (int i = threadIdx.x; i < rows * chunks; i += blockDim.x) {
        const int r = i / chunks, d = i % chunks * 8;
        const int flat = item.first_row + r;
        u32x4 x = {{0, 0, 0, 0}};
        if (r < item.rows && d < s.dim) {
            const T *from = queries + (item.token + flat / s.group) * width + (u64)(head * s.group + flat % s.group) * s.dim + d;
            x = *(const u32x4 *)from;
        }
        *(u32x4 *)(to + r * ROW + d) = x;
    }
}

// Fragment of 16 rows by 16 columns, row-major, as the left operand.
DEVICE void load_left(u32 (&a)[4], const T *tile, int row, int lane) {
    load_matrices(a, tile + (lane / 8 % 2 * 8 + lane % 8) * row + lane / 16 * 8);
}

// A pair of ones.
DEVICE u32 ones() { return pack(1.0f, 1.0f); }

struct Row {
    int position, first;
    float slope;
};

// Position and slope of row r of an item; rows that are not there repeat the last.
DEVICE Row row_of(const Item &item, int r, const int *positions, const float *slopes, int head, const Shape &s) {
    const int flat = item.first_row + min(r, item.rows - 1);
    Row row;
    row.position = positions[item.token + flat / s.group];
    row.first = first_seen(row.position, s);
    row.slope = slopes ? slopes[head * s.group + flat % s.group] : 0.0f;
    return row;
}

// True if both rows of a thread see a part plainly.
DEVICE bool plain_rows(const Row (&rows)[2], const Shape &s, int part) {
    return is_plain(s, part, rows[0].position, rows[0].first, rows[0].slope) && is_plain(s, part, rows[1].position, rows[1].first, rows[1].slope);
}

// Where a row's result goes: its output, or the state that is folded later; the other is none.
struct Target {
    T *out;
    float *state;
};

DEVICE Target target_of(const Item &item, int r, int head, T *out, float *state, const Shape &s) {
    const int flat = item.first_row + r, token = flat / s.group;
    const u64 heads = (u64)s.kv_heads * s.group, h = head * s.group + flat % s.group;
    Target to = {0, 0};
    if (item.state < 0) to.out = out + ((u64)(item.token + token) * heads + h) * s.dim;
    else to.state = state + ((u64)(item.state + token) * heads + h) * (s.dim + 2);
    return to;
}

// Writes columns d, d + 1 of a row.
DEVICE void store_pair(const Target &to, int d, float x, float y, float sum) {
    if (to.out) {
        *(u32 *)(to.out + d) = pack(__fdiv_rn(x, sum), __fdiv_rn(y, sum));
    } else {
        to.state[d] = x;
        to.state[d + 1] = y;
    }
}

DEVICE void store_sum(const Target &to, float m, float sum, const Shape &s) {
    to.state[s.dim] = m;
    to.state[s.dim + 1] = sum;
}

// The factor on what is stored of row r: that of its head's sink where the output is written.
DEVICE float last_factor(const Item &item, int r, int head, const float *sinks, float m, float &sum, const Shape &s) {
    return item.state < 0 ? fold_sink(sinks, head * s.group + (item.first_row + r) % s.group, m, sum) : 1.0f;
}

#define ARGUMENTS                                                                                                                  \
    (const T *queries, const T *keys, const T *values, const int *items, const int *tables, const int *positions, const float *slopes, \
     const float *sinks, T *out, float *state, int dim, int group, int kv_heads, float scale, float softcap, int window, int chunk)

// Grid: items, kv heads. Each warp has 16 rows and all keys of a part.
KERNEL_OF(32 * TALL_WARPS, 1, attend_tall)
ARGUMENTS {
    const Shape s = {dim, group, kv_heads, scale, softcap, window, chunk};
    DYNAMIC_SHARED(memory);
    T *q = (T *)memory, *k = q + TALL_ROWS * ROW, *v = k + PART * ROW;
    const Item item = ((const Item *)items)[blockIdx.x];
    // One that pads a recorded launch.
    if (item.rows == 0) return;
    const int head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int *table = tables + item.table;
    const int begin = first_part(item, positions, s);
    copy_part<32 * TALL_WARPS>(k, keys, table, begin, item.length, head, s);
    copy_part<32 * TALL_WARPS>(v, values, table, begin, item.length, head, s);
    load_queries(q, TALL_ROWS, queries, item, head, s);
    // A thread holds two rows of each product: lane / 4 and that plus 8.
    const int low = warp * 16 + lane / 4;
    Row rows[2] = {row_of(item, low, positions, slopes, head, s), row_of(item, low + 8, positions, slopes, head, s)};
    float m[2] = {-INFINITE, -INFINITE}, sum[2] = {0.0f, 0.0f};
    float total[HEAD / 8][4];
#pragma unroll
    for (int n = 0; n < HEAD / 8; n++)
        for (int i = 0; i < 4; i++) total[n][i] = 0.0f;

    for (int part = begin; part < item.end; part++) {
        // The keys are there, the values perhaps not yet.
        wait_copies<1>();
        __syncthreads();
        float x[PART / 8][4];
#pragma unroll
        for (int n = 0; n < PART / 8; n++)
            for (int i = 0; i < 4; i++) x[n][i] = 0.0f;
#pragma unroll
        for (int c = 0; c < HEAD / 16; c++) {
            u32 a[4];
            load_left(a, q + warp * 16 * ROW + c * 16, ROW, lane);
#pragma unroll
            for (int n = 0; n < PART / 16; n++) {
                u32 b[4];
                load_matrices(b, k + (n * 16 + lane / 16 * 8 + lane % 8) * ROW + c * 16 + lane / 8 % 2 * 8);
                multiply_add(x[2 * n], a, b[0], b[1]);
                multiply_add(x[2 * n + 1], a, b[2], b[3]);
            }
        }
        __syncthreads();
        const bool more = part + 1 < item.end;
        if (more) copy_part<32 * TALL_WARPS>(k, keys, table, part + 1, item.length, head, s);
        else commit_copies();
        float top[2] = {-INFINITE, -INFINITE};
        if (plain_rows(rows, s, part)) {
#pragma unroll
            for (int n = 0; n < PART / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    x[n][i] = __fmul_rn(__fmul_rn(x[n][i], s.scale), LOG2E);
                    top[i / 2] = fmaxf(top[i / 2], x[n][i]);
                }
        } else {
#pragma unroll
            for (int n = 0; n < PART / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const Row &row = rows[i / 2];
                    x[n][i] = logit(x[n][i], s, part * PART + n * 8 + lane % 4 * 2 + i % 2, row.position, row.first, row.slope);
                    top[i / 2] = fmaxf(top[i / 2], x[n][i]);
                }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
            top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 2));
        }
        float part_sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        u32 p[PART / 16][4];
#pragma unroll
        for (int n = 0; n < PART / 16; n++) {
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float *y = x[2 * n + j];
                p[n][2 * j] = pack(exp2_fast(y[0] - anchor(top[0])), exp2_fast(y[1] - anchor(top[0])));
                p[n][2 * j + 1] = pack(exp2_fast(y[2] - anchor(top[1])), exp2_fast(y[3] - anchor(top[1])));
            }
            // The sum is of the rounded weights, by the same instruction that weighs the values.
            multiply_add(part_sum, p[n], ones(), ones());
        }
        float mine[2], parts[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            fold_factors(m[i], top[i], mine[i], parts[i]);
            sum[i] = fold(sum[i], mine[i], part_sum[2 * i], parts[i]);
        }
        wait_copies<1>();
        __syncthreads();
#pragma unroll
        for (int d = 0; d < HEAD / 16; d++) {
            float left[4] = {0.0f, 0.0f, 0.0f, 0.0f}, right[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int n = 0; n < PART / 16; n++) {
                u32 b[4];
                load_matrices_transposed(b, v + (n * 16 + lane / 8 % 2 * 8 + lane % 8) * ROW + d * 16 + lane / 16 * 8);
                multiply_add(left, p[n], b[0], b[1]);
                multiply_add(right, p[n], b[2], b[3]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                total[2 * d][i] = fold(total[2 * d][i], mine[i / 2], left[i], parts[i / 2]);
                total[2 * d + 1][i] = fold(total[2 * d + 1][i], mine[i / 2], right[i], parts[i / 2]);
            }
        }
        __syncthreads();
        if (more) copy_part<32 * TALL_WARPS>(v, values, table, part + 1, item.length, head, s);
        else commit_copies();
    }
    wait_copies<0>();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int r = low + 8 * i;
        if (r >= item.rows) continue;
        const float by = last_factor(item, r, head, sinks, m[i], sum[i], s);
        const Target to = target_of(item, r, head, out, state, s);
#pragma unroll
        for (int n = 0; n < HEAD / 8; n++) {
            const int d = n * 8 + lane % 4 * 2;
            const float left = __fmul_rn(total[n][2 * i], by), right = __fmul_rn(total[n][2 * i + 1], by);
            if (d < s.dim) store_pair(to, d, left, right, sum[i]);
        }
        if (to.state && lane % 4 == 0) store_sum(to, m[i], sum[i], s);
    }
}
REGISTER(attend_tall)

#define WIDE_ROWS 16
#define WIDE_WARPS 8
#define P_ROW (PART + PAD)

// Grid: items, kv heads. Each warp computes the scores of its share of the keys, then its share of the output columns.
KERNEL_OF(32 * WIDE_WARPS, 2, attend_wide)
ARGUMENTS {
    const Shape s = {dim, group, kv_heads, scale, softcap, window, chunk};
    DYNAMIC_SHARED(memory);
    T *q = (T *)memory, *k = q + WIDE_ROWS * ROW, *v = k + PART * ROW, *weights = v + PART * ROW;
    float *tops = (float *)(weights + WIDE_ROWS * P_ROW);
    const Item item = ((const Item *)items)[blockIdx.x];
    if (item.rows == 0) return;
    const int head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int *table = tables + item.table;
    const int begin = first_part(item, positions, s);
    copy_part<32 * WIDE_WARPS>(k, keys, table, begin, item.length, head, s);
    copy_part<32 * WIDE_WARPS>(v, values, table, begin, item.length, head, s);
    load_queries(q, WIDE_ROWS, queries, item, head, s);
    const int low = lane / 4;
    Row rows[2] = {row_of(item, low, positions, slopes, head, s), row_of(item, low + 8, positions, slopes, head, s)};
    float m[2] = {-INFINITE, -INFINITE}, sum[2] = {0.0f, 0.0f};
    // Keys of a warp, and its columns, in tiles of 8, of which the last warps may have fewer.
    const int share = PART / WIDE_WARPS, all = HEAD / 8, tiles = (all + WIDE_WARPS - 1) / WIDE_WARPS;
    const int first_tile = warp * tiles;
    float total[tiles][4];
#pragma unroll
    for (int n = 0; n < tiles; n++)
        for (int i = 0; i < 4; i++) total[n][i] = 0.0f;
    if (item.state < -1)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (low + 8 * i >= item.rows) continue;
            const float *from = state + state_at(item, -2 - item.state, low + 8 * i, head, s);
            m[i] = from[s.dim];
            sum[i] = from[s.dim + 1];
#pragma unroll
            for (int n = 0; n < tiles; n++)
                for (int j = 0; j < 2; j++) {
                    const int d = (first_tile + n) * 8 + lane % 4 * 2 + j;
                    if (d < s.dim) total[n][2 * i + j] = from[d];
                }
        }

    for (int part = begin; part < item.end; part++) {
        wait_copies<1>();
        __syncthreads();
        float x[share / 8][4];
#pragma unroll
        for (int n = 0; n < share / 8; n++)
            for (int i = 0; i < 4; i++) x[n][i] = 0.0f;
#pragma unroll
        for (int c = 0; c < HEAD / 16; c++) {
            u32 a[4];
            load_left(a, q + c * 16, ROW, lane);
#pragma unroll
            for (int n = 0; n < share / 16; n++) {
                u32 b[4];
                load_matrices(b, k + (warp * share + n * 16 + lane / 16 * 8 + lane % 8) * ROW + c * 16 + lane / 8 % 2 * 8);
                multiply_add(x[2 * n], a, b[0], b[1]);
                multiply_add(x[2 * n + 1], a, b[2], b[3]);
            }
        }
        float top[2] = {-INFINITE, -INFINITE};
        if (plain_rows(rows, s, part)) {
#pragma unroll
            for (int n = 0; n < share / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    x[n][i] = __fmul_rn(__fmul_rn(x[n][i], s.scale), LOG2E);
                    top[i / 2] = fmaxf(top[i / 2], x[n][i]);
                }
        } else {
#pragma unroll
            for (int n = 0; n < share / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const Row &row = rows[i / 2];
                    x[n][i] = logit(x[n][i], s, part * PART + warp * share + n * 8 + lane % 4 * 2 + i % 2, row.position, row.first, row.slope);
                    top[i / 2] = fmaxf(top[i / 2], x[n][i]);
                }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
            top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 2));
            if (lane % 4 == 0) tops[warp * 16 + low + 8 * i] = top[i];
        }
        __syncthreads();
        const bool more = part + 1 < item.end;
        if (more) copy_part<32 * WIDE_WARPS>(k, keys, table, part + 1, item.length, head, s);
        else commit_copies();
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = low + 8 * i;
            top[i] = tops[r];
#pragma unroll
            for (int other = 1; other < WIDE_WARPS; other++) top[i] = fmaxf(top[i], tops[other * 16 + r]);
#pragma unroll
            for (int n = 0; n < share / 8; n++)
                *(u32 *)(weights + r * P_ROW + warp * share + n * 8 + lane % 4 * 2) =
                    pack(exp2_fast(x[n][2 * i] - anchor(top[i])), exp2_fast(x[n][2 * i + 1] - anchor(top[i])));
        }
        wait_copies<1>();
        __syncthreads();
        float part_sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        float y[tiles][4];
#pragma unroll
        for (int n = 0; n < tiles; n++)
            for (int i = 0; i < 4; i++) y[n][i] = 0.0f;
#pragma unroll
        for (int c = 0; c < PART / 32; c++) {
            u32 a[2][4];
            load_left(a[0], weights + c * 32, P_ROW, lane);
            load_left(a[1], weights + c * 32 + 16, P_ROW, lane);
            multiply_add(part_sum, a[0], ones(), ones());
            multiply_add(part_sum, a[1], ones(), ones());
#pragma unroll
            for (int n = 0; n < tiles; n++) {
                if (all % WIDE_WARPS != 0 && first_tile + n >= all) continue;
                u32 b[4];
                load_matrices_transposed(b, v + (c * 32 + lane) * ROW + (first_tile + n) * 8);
                multiply_add(y[n], a[0], b[0], b[1]);
                multiply_add(y[n], a[1], b[2], b[3]);
            }
        }
        float mine[2], parts[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            fold_factors(m[i], top[i], mine[i], parts[i]);
            sum[i] = fold(sum[i], mine[i], part_sum[2 * i], parts[i]);
        }
#pragma unroll
        for (int n = 0; n < tiles; n++)
            for (int i = 0; i < 4; i++) total[n][i] = fold(total[n][i], mine[i / 2], y[n][i], parts[i / 2]);
        __syncthreads();
        if (more) copy_part<32 * WIDE_WARPS>(v, values, table, part + 1, item.length, head, s);
        else commit_copies();
    }
    wait_copies<0>();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int r = low + 8 * i;
        if (r >= item.rows) continue;
        const float by = last_factor(item, r, head, sinks, m[i], sum[i], s);
        const Target to = target_of(item, r, head, out, state, s);
#pragma unroll
        for (int n = 0; n < tiles; n++) {
            const int d = (first_tile + n) * 8 + lane % 4 * 2;
            const float left = __fmul_rn(total[n][2 * i], by), right = __fmul_rn(total[n][2 * i + 1], by);
            if (d < s.dim) store_pair(to, d, left, right, sum[i]);
        }
        if (to.state && warp == 0 && lane % 4 == 0) store_sum(to, m[i], sum[i], s);
    }
}
REGISTER(attend_wide)

#else

// Grid: items, kv heads; 128 threads: one for each key of a part, then one for each column.
KERNEL_OF(PART, 1, attend_plain)
(const T *queries, const T *keys, const T *values, const int *items, const int *tables, const int *positions, const float *slopes,
 const float *sinks, T *out, float *state, int dim, int group, int kv_heads, float scale, float softcap, int window, int chunk) {
    const Shape s = {dim, group, kv_heads, scale, softcap, window, chunk};
    __shared__ float q[256], p[PART], scratch[PART / 32];
    const Item item = ((const Item *)items)[blockIdx.x];
    if (item.rows == 0) return;
    const int head = blockIdx.y, thread = threadIdx.x;
    const int *table = tables + item.table;
    const u64 heads = (u64)kv_heads * group;
    const int begin = first_part(item, positions, s);
    for (int r = 0; r < item.rows; r++) {
        const int flat = item.first_row + r, token = item.token + flat / group, h = head * group + flat % group;
        const int position = positions[token];
        const int first = first_seen(position, s);
        const float slope = slopes ? slopes[h] : 0.0f;
        __syncthreads();
        for (int d = thread; d < dim; d += PART) q[d] = queries[(token * heads + h) * dim + d];
        __syncthreads();
        float m = -INFINITE, sum = 0.0f, total[2] = {0.0f, 0.0f};
        if (item.state < -1) {
            const float *from = state + state_at(item, -2 - item.state, r, head, s);
            m = from[dim];
            sum = from[dim + 1];
            for (int i = 0; i < 2; i++)
                if (thread + i * PART < dim) total[i] = from[thread + i * PART];
        }
        for (int part = begin; part < item.end; part++) {
            const int key = part * PART + thread;
            float x = -INFINITE;
            if (key < item.length) {
                const T *k = keys + (((u64)table[key / BLOCK] * kv_heads + head) * BLOCK + key % BLOCK) * dim;
                float score = 0.0f;
                for (int d = 0; d < dim; d++) score = __fmaf_rn(q[d], k[d], score);
                x = logit(score, s, key, position, first, slope);
            }
            const float top = block_max(x, scratch);
            const float e = exponential(x - anchor(top));
            const float part_sum = block_sum(e, scratch);
            p[thread] = e;
            __syncthreads();
            float mine, parts;
            fold_factors(m, top, mine, parts);
            sum = fold(sum, mine, part_sum, parts);
            const int count = min(PART, item.length - part * PART);
            for (int i = 0; i < 2; i++) {
                const int d = thread + i * PART;
                if (d >= dim) continue;
                float y = 0.0f;
                for (int j = 0; j < count; j++) {
                    const int at = part * PART + j;
                    const T *v = values + (((u64)table[at / BLOCK] * kv_heads + head) * BLOCK + at % BLOCK) * dim;
                    y = __fmaf_rn(p[j], v[d], y);
                }
                total[i] = fold(total[i], mine, y, parts);
            }
            __syncthreads();
        }
        const float by = item.state < 0 ? fold_sink(sinks, h, m, sum) : 1.0f;
        for (int i = 0; i < 2; i++) {
            const int d = thread + i * PART;
            if (d >= dim) continue;
            if (item.state < 0) out[(token * heads + h) * dim + d] = __fdiv_rn(__fmul_rn(total[i], by), sum);
            else state[state_at(item, item.state, r, head, s) + d] = total[i];
        }
        if (item.state >= 0 && thread == 0) {
            float *to = state + state_at(item, item.state, r, head, s) + dim;
            to[0] = m;
            to[1] = sum;
        }
    }
}
REGISTER(attend_plain)

#endif

// Grid: tokens with several items, heads; 128 threads. `merges`: token, offset into `slots`, slots in order of position.
KERNEL_OF(128, 1, attend_merge)
(const float *state, const int *merges, const int *slots, const float *sinks, T *out, int dim, int heads) {
    const int *merge = merges + blockIdx.x * 3;
    // One that pads a recorded launch.
    if (merge[2] == 0) return;
    const int head = blockIdx.y;
    for (int d = threadIdx.x; d < dim; d += blockDim.x) {
        float m = -INFINITE, sum = 0.0f, x = 0.0f;
        for (int i = 0; i < merge[2]; i++) {
            const float *from = state + ((u64)slots[merge[1] + i] * heads + head) * (dim + 2);
            float mine, parts;
            fold_factors(m, from[dim], mine, parts);
            sum = fold(sum, mine, from[dim + 1], parts);
            x = fold(x, mine, from[d], parts);
        }
        const float by = fold_sink(sinks, head, m, sum);
        out[((u64)merge[0] * heads + head) * dim + d] = narrow(__fdiv_rn(__fmul_rn(x, by), sum));
    }
}
REGISTER(attend_merge)
