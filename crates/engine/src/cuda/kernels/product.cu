// Matrix products of our own: y[m, n] = x[m, k] w[n, k]^T, where w may be quantised.
//
// An output is a chain of matrix instructions over k in ascending steps of 16 within a segment of k, and the segments' sums are added
// from left to right. Neither the number of rows nor the tile they fall into is part of that, so a row's bits do not depend on its
// batch. w is the left operand, so that few rows of x waste little.
//
// In E4M3 x has codes too and a scale for each row. The tensor cores of some devices add products of 8 bits with fewer bits than f32 has, so
// what they add is 128 columns, and such sums times the weights' scale are added in f32.
//
// The file is compiled once for each kind of weights (WEIGHTS), and with EXPERTS for mixtures: the rows of x are then sorted by expert,
// a tile has rows of one expert, and its weights are that expert's.

#ifndef WEIGHTS
#define WEIGHTS KIND_DENSE
#endif

#if ELEMENT != 0

// Rows of both operands in shared memory: 128 bytes, and 16 that keep rows on different banks. K_16 numbers take 16 bytes.
#if WEIGHTS == KIND_E4M3
typedef u8 Number;
#define K_16 16
#define STEP 128
#else
typedef T Number;
#define K_16 8
#define STEP 64
#endif
#define TILE_ROW (STEP + K_16)
#define STAGES 3

// Columns at..at + STEP of `rows` rows of w to shared memory, zeros outside.
template <int ROWS, int THREADS> struct WeightTile {
    // Pieces of eight weights for a thread.
    static const int PIECES = ROWS * (STEP / 8) / THREADS;
    Raw raw[PIECES];

    DEVICE_MEMBER void fetch_pieces(const u8 *w, int n, int k, int row, int at) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const int i = p * THREADS + threadIdx.x, r = row + i / (STEP / 8), c = at + i % (STEP / 8) * 8;
            if (r < n && c < k) raw[p] = fetch<WEIGHTS>(w + (u64)r * row_bytes(WEIGHTS, k), k, c);
        }
    }
    DEVICE_MEMBER void store_pieces(void *tile, int n, int k, int row, int at) const {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const int i = p * THREADS + threadIdx.x, r = row + i / (STEP / 8), c = at + i % (STEP / 8) * 8;
            u32x4 packed = {{0, 0, 0, 0}};
            if (r < n && c < k) {
                float v[8];
                expand<WEIGHTS>(raw[p], c, v);
                for (int j = 0; j < 4; j++) packed.v[j] = pack(v[2 * j], v[2 * j + 1]);
            }
            *(u32x4 *)((T *)tile + i / (STEP / 8) * TILE_ROW + i % (STEP / 8) * 8) = packed;
        }
    }
};

// Rows of `from`, `stride` bytes apart, or those that `sources` (pairs of `kept` a row) names.
template <int ROWS, int THREADS>
DEVICE void copy_tile(Number *tile, const void *from, u64 stride, const int *sources, int kept, int rows, int k, int row, int at) {
    for (int i = threadIdx.x; i < ROWS * 8; i += THREADS) {
        const int r = row + i / 8, c = at + i % 8 * K_16;
        const bool valid = r < rows && c < k;
        const int source = valid && sources ? sources[r] / kept : r;
        const Number *at_source = (const Number *)((const u8 *)from + source * stride) + c;
        copy_async(tile + i / 8 * TILE_ROW + i % 8 * K_16, valid ? at_source : from, valid);
    }
}

#if WEIGHTS == KIND_E4M3
#define MULTIPLY_ADD multiply_add_e4m3
#else
#define MULTIPLY_ADD multiply_add
#endif

// A block computes N_TILE columns of y for M_TILE rows, with WARPS_N x WARPS_M warps. Grid: rows / M_TILE, columns / N_TILE, and
// in z either one block for all segments or one for each; the latter write their sums to `partial` [segments, m, n].
template <int N_TILE, int M_TILE, int WARPS_N, int WARPS_M>
DEVICE void product_tile(const u8 *w, const Number *x, void *y, float *partial, int m, int n, int k, int row_y, int out,
                         const float *x_scales, const Rows &rows, u8 *memory) {
    const int THREADS = 32 * WARPS_N * WARPS_M;
    const int TN = N_TILE / WARPS_N / 16, TM = M_TILE / WARPS_M / 8;
    const bool e4m3 = WEIGHTS == KIND_E4M3, dense = WEIGHTS == KIND_DENSE || e4m3;
    const u64 w_row = row_bytes(WEIGHTS, k), x_row = (u64)k * sizeof(Number);
    Number *w_tiles = (Number *)memory, *x_tiles = w_tiles + STAGES * N_TILE * TILE_ROW;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_n = warp % WARPS_N * (N_TILE / WARPS_N), warp_m = warp / WARPS_N * (M_TILE / WARPS_M);
    const int first_m = rows.first, first_n = blockIdx.y * N_TILE;
    const int all = (k + STEP - 1) / STEP;
    const int begin = gridDim.z == 1 ? 0 : blockIdx.z * (SEGMENT / STEP);
    const int end = gridDim.z == 1 ? all : min(all, begin + SEGMENT / STEP);
    float sum[TN][TM][4], total[TN][TM][4];
#pragma unroll
    for (int a = 0; a < TN; a++)
#pragma unroll
        for (int b = 0; b < TM; b++)
            for (int i = 0; i < 4; i++) sum[a][b][i] = total[a][b][i] = 0.0f;

#if WEIGHTS == KIND_E4M3
    // Of this segment.
    float scaled[TN][TM][4];
#pragma unroll
    for (int a = 0; a < TN; a++)
#pragma unroll
        for (int b = 0; b < TM; b++)
            for (int i = 0; i < 4; i++) scaled[a][b][i] = 0.0f;
#endif
    WeightTile<N_TILE, THREADS> pieces;
    // Two steps ahead; a group for each step, empty ones too, so that counting them is simple.
    for (int ahead = 0; ahead < STAGES - 1; ahead++) {
        if (begin + ahead < end) {
            const int at = (begin + ahead) * STEP;
            if (dense) {
                copy_tile<N_TILE, THREADS>(w_tiles + ahead * N_TILE * TILE_ROW, w, w_row, 0, 1, n, k, first_n, at);
            } else {
                pieces.fetch_pieces(w, n, k, first_n, at);
                pieces.store_pieces(w_tiles + ahead * N_TILE * TILE_ROW, n, k, first_n, at);
            }
            copy_tile<M_TILE, THREADS>(x_tiles + ahead * M_TILE * TILE_ROW, x, x_row, rows.sources, rows.kept, rows.end, k, first_m, at);
        }
        commit_copies();
    }
    for (int step = begin; step < end; step++) {
        const int stage = (step - begin) % STAGES, next = step + STAGES - 1, next_stage = (next - begin) % STAGES;
        wait_copies<STAGES - 2>();
        __syncthreads();
        if (next < end) {
            if (dense) copy_tile<N_TILE, THREADS>(w_tiles + next_stage * N_TILE * TILE_ROW, w, w_row, 0, 1, n, k, first_n, next * STEP);
            else pieces.fetch_pieces(w, n, k, first_n, next * STEP);
            copy_tile<M_TILE, THREADS>(x_tiles + next_stage * M_TILE * TILE_ROW, x, x_row, rows.sources, rows.kept, rows.end, k, first_m,
                                       next * STEP);
        }
        commit_copies();
        const Number *w_tile = w_tiles + stage * N_TILE * TILE_ROW, *x_tile = x_tiles + stage * M_TILE * TILE_ROW;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            u32 a[TN][4];
#pragma unroll
            for (int i = 0; i < TN; i++)
                load_matrices(a[i], w_tile + (warp_n + i * 16 + lane / 8 % 2 * 8 + lane % 8) * TILE_ROW + (c * 2 + lane / 16) * K_16);
            if (TM == 1) {
                u32 b[4];
                // The upper two matrices repeat the lower two.
                load_matrices(b, x_tile + (warp_m + lane % 8) * TILE_ROW + (c * 2 + lane / 8 % 2) * K_16);
#pragma unroll
                for (int i = 0; i < TN; i++) MULTIPLY_ADD(sum[i][0], a[i], b[0], b[1]);
            } else {
#pragma unroll
                for (int j = 0; j < TM / 2; j++) {
                    u32 b[4];
                    load_matrices(b, x_tile + (warp_m + j * 16 + lane / 16 * 8 + lane % 8) * TILE_ROW + (c * 2 + lane / 8 % 2) * K_16);
#pragma unroll
                    for (int i = 0; i < TN; i++) {
                        MULTIPLY_ADD(sum[i][2 * j], a[i], b[0], b[1]);
                        MULTIPLY_ADD(sum[i][2 * j + 1], a[i], b[2], b[3]);
                    }
                }
            }
        }
        // Nobody reads this stage before two barriers have passed.
        if (!dense && next < end) pieces.store_pieces(w_tiles + next_stage * N_TILE * TILE_ROW, n, k, first_n, next * STEP);
#if WEIGHTS == KIND_E4M3
#pragma unroll
        for (int a = 0; a < TN; a++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int column = first_n + warp_n + a * 16 + lane / 4 + half * 8;
                const float scale = column < n ? ((const float *)(w + column * w_row + k))[step] : 0.0f;
#pragma unroll
                for (int b = 0; b < TM; b++)
                    for (int i = half * 2; i < half * 2 + 2; i++) {
                        scaled[a][b][i] = __fmaf_rn(sum[a][b][i], scale, scaled[a][b][i]);
                        sum[a][b][i] = 0.0f;
                    }
            }
#endif
        if ((step + 1) % (SEGMENT / STEP) == 0 || step + 1 == end)
#pragma unroll
            for (int a = 0; a < TN; a++)
#pragma unroll
                for (int b = 0; b < TM; b++)
                    for (int i = 0; i < 4; i++) {
#if WEIGHTS == KIND_E4M3
                        const int row = first_m + warp_m + b * 8 + lane % 4 * 2 + i % 2;
                        const int source = row < rows.end && rows.sources ? rows.sources[row] / rows.kept : row;
                        const float of_segment = __fmul_rn(scaled[a][b][i], row < rows.end ? x_scales[source] : 0.0f);
                        scaled[a][b][i] = 0.0f;
#else
                        const float of_segment = sum[a][b][i];
                        sum[a][b][i] = 0.0f;
#endif
                        total[a][b][i] = __fadd_rn(total[a][b][i], of_segment);
                    }
    }
    wait_copies<0>();
#pragma unroll
    for (int a = 0; a < TN; a++)
#pragma unroll
        for (int b = 0; b < TM; b++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = first_n + warp_n + a * 16 + lane / 4 + i / 2 * 8;
                const int row = first_m + warp_m + b * 8 + lane % 4 * 2 + i % 2;
                if (column >= n || row >= rows.end) continue;
                if (gridDim.z == 1) put(y, (u64)row * row_y + column, out, total[a][b][i]);
                else partial[((u64)blockIdx.z * m + row) * n + column] = total[a][b][i];
            }
}

#if WEIGHTS == KIND_E4M3
#define X_SCALES , const float *x_scales
#else
#define X_SCALES
#define x_scales 0
#endif

#ifdef EXPERTS
// Grid: tiles (experts.cu), columns / N_TILE, and z as above; `stride` bytes of weights an expert.
#define PRODUCT(name, n_tile, m_tile, warps_n, warps_m)                                                                            \
    KERNEL_OF(32 * warps_n * warps_m, 1, experts_##m_tile)                                                                         \
    (const u8 *w, u64 stride, const int *tiles, const int *sources, int kept, const Number *x, void *y, float *partial, int m,     \
     int n, int k, int row_y, int out X_SCALES) {                                                                                  \
        DYNAMIC_SHARED(memory);                                                                                                    \
        const int *tile = tiles + blockIdx.x * 3;                                                                                  \
        if (tile[0] < 0) return;                                                                                                   \
        const Rows rows = {tile[1], tile[2], sources, kept};                                                                       \
        product_tile<n_tile, m_tile, warps_n, warps_m>(w + tile[0] * stride, x, y, partial, m, n, k, row_y, out, x_scales, rows,   \
                                                       memory);                                                                    \
    }                                                                                                                              \
    REGISTER(experts_##m_tile)
#else
#define PRODUCT(name, n_tile, m_tile, warps_n, warps_m)                                                                            \
    KERNEL_OF(32 * warps_n * warps_m, 1, name)                                                                                     \
    (const u8 *w, const Number *x, void *y, float *partial, int m, int n, int k, int row_y, int out X_SCALES) {                    \
        DYNAMIC_SHARED(memory);                                                                                                    \
        const Rows rows = {(int)blockIdx.x * m_tile, m, 0, 1};                                                                     \
        product_tile<n_tile, m_tile, warps_n, warps_m>(w, x, y, partial, m, n, k, row_y, out, x_scales, rows, memory);             \
    }                                                                                                                              \
    REGISTER(name)
#endif

PRODUCT(product_8, 64, 8, 4, 1)
PRODUCT(product_16, 64, 16, 4, 1)
PRODUCT(product_32, 64, 32, 4, 1)
PRODUCT(product_64, 64, 64, 4, 1)
#if WEIGHTS == KIND_E4M3
// Three sums of each output: those of 128 columns do not fit into registers.
PRODUCT(product_128, 64, 128, 4, 2)
#else
PRODUCT(product_128, 128, 128, 4, 2)
#endif

#else

// Grid: rows / 32, columns / 32; 256 threads, each computes four outputs. One chain of fused multiply-adds in ascending k.
#ifdef EXPERTS
KERNEL_OF(256, 1, experts_plain)
(const T *w, u64 stride, const int *tiles, const int *sources, int kept, const T *x, void *y, int n, int k, int row_y, int out) {
    const int *tile = tiles + blockIdx.x * 3;
    if (tile[0] < 0) return;
    w += tile[0] * (stride / sizeof(T));
    const int first_m = tile[1], m = tile[2];
#else
KERNEL_OF(256, 1, product_plain)
(const T *w, const T *x, void *y, int m, int n, int k, int row_y, int out) {
    const int first_m = blockIdx.x * 32, kept = 1;
    const int *sources = 0;
#endif
    __shared__ float ws[32][33], xs[32][33];
    const int column = threadIdx.x % 32, band = threadIdx.x / 32;
    const int first_n = blockIdx.y * 32;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int at = 0; at < k; at += 32) {
        for (int i = threadIdx.x; i < 32 * 32; i += 256) {
            const int r = i / 32, c = at + i % 32;
            ws[r][i % 32] = first_n + r < n && c < k ? w[(u64)(first_n + r) * k + c] : 0.0f;
            const bool valid = first_m + r < m && c < k;
            const int source = valid && sources ? sources[first_m + r] / kept : first_m + r;
            xs[r][i % 32] = valid ? x[(u64)source * k + c] : 0.0f;
        }
        __syncthreads();
        for (int c = 0; c < min(32, k - at); c++)
            for (int i = 0; i < 4; i++) sum[i] = __fmaf_rn(xs[band * 4 + i][c], ws[column][c], sum[i]);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        const int row = first_m + band * 4 + i;
        if (row < m && first_n + column < n) put(y, (u64)row * row_y + first_n + column, out, sum[i]);
    }
}
#ifdef EXPERTS
REGISTER(experts_plain)
#else
REGISTER(product_plain)
#endif

#endif

#if WEIGHTS != KIND_DENSE && WEIGHTS != KIND_E4M3 && !defined(EXPERTS)
// Grid: rows of w, k / 2048. w as elements.
KERNEL_OF(256, 1, dequantise)
(const u8 *w, int k, T *to) {
    const int at = (blockIdx.y * 256 + threadIdx.x) * 8;
    if (at >= k) return;
    float v[8];
    expand<WEIGHTS>(fetch<WEIGHTS>(w + (u64)blockIdx.x * row_bytes(WEIGHTS, k), k, at), at, v);
    for (int i = 0; i < 8; i++) to[(u64)blockIdx.x * k + at + i] = narrow(v[i]);
}
REGISTER(dequantise)

// `dequantise` that stores 16 bytes at a time.
KERNEL_OF(256, 1, dequantise_8)
(const u8 *w, int k, T *to) {
    const int at = (blockIdx.y * 256 + threadIdx.x) * 8;
    if (at >= k) return;
    float v[8];
    expand<WEIGHTS>(fetch<WEIGHTS>(w + (u64)blockIdx.x * row_bytes(WEIGHTS, k), k, at), at, v);
    store_8(to + (u64)blockIdx.x * k + at, v);
}
REGISTER(dequantise_8)
#endif
