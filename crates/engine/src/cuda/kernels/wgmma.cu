// Matrix products of dense weights by the instructions of warp groups: y[m, n] = x[m, k] w[n, k]^T, as product.cu has them, but with the
// sums of those instructions, which nobody promises to be those of mma.sync.
//
// An output is a chain over k in ascending steps of 16 within a segment, and the segments' sums are added from left to right, whatever
// the number of rows and the tile. w is the operand of 64 rows, so that few rows of x waste nothing.
//
// Weights are elements, or E4M3, where x has codes too and a scale for each row: sums of 128 columns times the weights' scale are added in
// f32, as in product.cu, and more than there they have to be: these instructions add products of 8 bits with about 14 bits.
//
// With EXPERTS for mixtures: rows of x sorted by expert, a tile of rows of one expert.

#ifndef WEIGHTS
#define WEIGHTS KIND_DENSE
#endif

// Rows of both operands in shared memory: 128 bytes. K_16 numbers take 16 bytes.
#if WEIGHTS == KIND_E4M3
typedef u8 Number;
#define K_16 16
#define STEP 128
#define MULTIPLY_ASYNC multiply_async_e4m3
#else
typedef T Number;
#define K_16 8
#define STEP 64
#define MULTIPLY_ASYNC multiply_async
#endif
#define ROW_BYTES 128

// Columns at..at + STEP of `count` rows, `stride` bytes apart, or of those that `sources` (pairs of `kept` a row) names, in the layout of swizzled_matrix;
// zeros outside.
template <int ROWS, int THREADS>
DEVICE void copy_swizzled(u8 *tile, const void *from, u64 stride, const int *sources, int kept, int count, int k, int row, int at) {
#pragma unroll
    for (int p = 0; p < (ROWS * 8 + THREADS - 1) / THREADS; p++) {
        const int i = p * THREADS + threadIdx.x;
        if (i >= ROWS * 8) break;
        const int in = i / 8, piece = i % 8, r = row + in, c = at + piece * K_16;
        const bool valid = r < count && c < k;
        const int source = valid && sources ? sources[r] / kept : r;
        const Number *at_source = (const Number *)((const u8 *)from + source * stride) + c;
        copy_async(tile + in * ROW_BYTES + (piece ^ in % 8) * 16, valid ? at_source : from, valid);
    }
}

// Shared memory begins anywhere, and the swizzle's pattern at a multiple of 1024.
DEVICE u8 *aligned(u8 *memory) { return memory + (1024 - shared_address(memory) % 1024) % 1024; }

// A block of GROUPS warp groups computes 64 columns of y a group for M_TILE rows. Grid: rows / M_TILE, columns / (64 * GROUPS), and in z
// either one block for all segments or one for each; the latter write their sums to `partial` [segments, m, n].
template <int GROUPS, int M_TILE, int STAGES>
DEVICE void product_tile(const u8 *w, const Number *x, void *y, float *partial, int m, int n, int k, int row_y, int out,
                         const float *x_scales, const Rows &rows, u8 *memory) {
    const int THREADS = 128 * GROUPS, N_TILE = 64 * GROUPS;
    const int W_BYTES = N_TILE * ROW_BYTES, X_BYTES = M_TILE * ROW_BYTES;
    u8 *w_tiles = aligned(memory), *x_tiles = w_tiles + STAGES * W_BYTES;
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int first_m = rows.first, first_n = blockIdx.y * N_TILE;
    const int all = (k + STEP - 1) / STEP;
    const int begin = gridDim.z == 1 ? 0 : blockIdx.z * (SEGMENT / STEP);
    const int end = gridDim.z == 1 ? all : min(all, begin + SEGMENT / STEP);
    const u64 w_row = row_bytes(WEIGHTS, k), x_row = (u64)k * sizeof(Number);
    // Of the instructions, of a segment, of all.
    float sum[M_TILE / 2], scaled[M_TILE / 2], total[M_TILE / 2];
#pragma unroll
    for (int i = 0; i < M_TILE / 2; i++) sum[i] = scaled[i] = total[i] = 0.0f;

    const auto copy = [&](int step) {
        if (step < end) {
            const int stage = (step - begin) % STAGES, at = step * STEP;
            copy_swizzled<N_TILE, THREADS>(w_tiles + stage * W_BYTES, w, w_row, 0, 1, n, k, first_n, at);
            copy_swizzled<M_TILE, THREADS>(x_tiles + stage * X_BYTES, x, x_row, rows.sources, rows.kept, rows.end, k, first_m, at);
        }
        // A group for each step, empty ones too, so that counting them is simple.
        commit_copies();
    };
    // Copies go to the stage that products read two steps ago: those of the last step may still be running.
    for (int ahead = 0; ahead < STAGES - 2; ahead++) copy(begin + ahead);
    for (int first = begin; first < end; first += SEGMENT / STEP) {
        for (int step = first; step < min(end, first + SEGMENT / STEP); step++) {
            const int stage = (step - begin) % STAGES;
            wait_copies<STAGES - 3>();
            publish_to_products();
            __syncthreads();
            const u64 a = swizzled_matrix(w_tiles + stage * W_BYTES + group * 64 * ROW_BYTES);
            const u64 b = swizzled_matrix(x_tiles + stage * X_BYTES);
            order_accumulators();
#pragma unroll
            for (int c = 0; c < 4; c++) MULTIPLY_ASYNC(sum, a + c * 2, b + c * 2, c > 0 || (WEIGHTS != KIND_E4M3 && step > first));
            commit_products();
            copy(step + STAGES - 2);
#if WEIGHTS == KIND_E4M3
            float scales[2];
            for (int half = 0; half < 2; half++) {
                const int column = first_n + group * 64 + warp * 16 + lane / 4 + half * 8;
                scales[half] = column < n ? ((const float *)(w + column * w_row + k))[step] : 0.0f;
            }
            wait_products<0>();
            take(sum);
#pragma unroll
            for (int i = 0; i < M_TILE / 2; i++) scaled[i] = __fmaf_rn(sum[i], scales[i / 2 % 2], scaled[i]);
#else
            wait_products<1>();
#endif
        }
#if WEIGHTS == KIND_E4M3
#pragma unroll
        for (int i = 0; i < M_TILE / 2; i++) {
            const int row = first_m + i / 4 * 8 + lane % 4 * 2 + i % 2;
            const int source = row < rows.end && rows.sources ? rows.sources[row] / rows.kept : row;
            total[i] = __fadd_rn(total[i], __fmul_rn(scaled[i], row < rows.end ? x_scales[source] : 0.0f));
            scaled[i] = 0.0f;
        }
#else
        wait_products<0>();
        take(sum);
#pragma unroll
        for (int i = 0; i < M_TILE / 2; i++) total[i] = __fadd_rn(total[i], sum[i]);
#endif
    }
    wait_copies<0>();
#pragma unroll
    for (int j = 0; j < M_TILE / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = first_n + group * 64 + warp * 16 + lane / 4 + i / 2 * 8;
            const int row = first_m + j * 8 + lane % 4 * 2 + i % 2;
            if (column >= n || row >= rows.end) continue;
            if (gridDim.z == 1) put(y, (u64)row * row_y + column, out, total[4 * j + i]);
            else partial[((u64)blockIdx.z * m + row) * n + column] = total[4 * j + i];
        }
}

#if WEIGHTS == KIND_E4M3
#define X_SCALES , const float *x_scales
#else
#define X_SCALES
#define x_scales 0
#endif

#ifdef EXPERTS
// Arguments and grid as those of product.cu's experts_N.
#define PRODUCT(groups, m_tile, stages)                                                                                            \
    KERNEL_OF(128 * groups, 1, wgmma_experts_##m_tile)                                                                             \
    (const u8 *w, u64 stride, const int *tiles, const int *sources, int kept, const Number *x, void *y, float *partial, int m,     \
     int n, int k, int row_y, int out X_SCALES) {                                                                                  \
        DYNAMIC_SHARED(memory);                                                                                                    \
        const int *tile = tiles + blockIdx.x * 3;                                                                                  \
        if (tile[0] < 0) return;                                                                                                   \
        const Rows rows = {tile[1], tile[2], sources, kept};                                                                       \
        product_tile<groups, m_tile, stages>(w + tile[0] * stride, x, y, partial, m, n, k, row_y, out, x_scales, rows, memory);    \
    }                                                                                                                              \
    REGISTER(wgmma_experts_##m_tile)
#else
#define PRODUCT(groups, m_tile, stages)                                                                                            \
    KERNEL_OF(128 * groups, 1, wgmma_##m_tile)                                                                                     \
    (const u8 *w, const Number *x, void *y, float *partial, int m, int n, int k, int row_y, int out X_SCALES) {                    \
        DYNAMIC_SHARED(memory);                                                                                                    \
        const Rows rows = {(int)blockIdx.x * m_tile, m, 0, 1};                                                                     \
        product_tile<groups, m_tile, stages>(w, x, y, partial, m, n, k, row_y, out, x_scales, rows, memory);                       \
    }                                                                                                                              \
    REGISTER(wgmma_##m_tile)
#endif

PRODUCT(1, 8, 6)
PRODUCT(1, 16, 6)
PRODUCT(1, 32, 6)
PRODUCT(1, 64, 4)
#if WEIGHTS == KIND_E4M3
// Three sums of each output: with 128 rows they do not fit into registers.
PRODUCT(2, 96, 4)
#else
PRODUCT(2, 128, 4)
#ifndef EXPERTS
PRODUCT(2, 192, 4)
#endif
#endif
