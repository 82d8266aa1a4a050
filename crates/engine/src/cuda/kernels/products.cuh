// What all products share: where results go, the rows of a block, the sum of segments of k.

#define OUT_ELEMENTS 0
#define OUT_FLOATS 1
#define OUT_ADD 2

DEVICE void put(void *y, u64 at, int out, float x) {
    if (out == OUT_ELEMENTS) ((T *)y)[at] = narrow(x);
    else if (out == OUT_FLOATS) ((float *)y)[at] = x;
    else ((float *)y)[at] = __fadd_rn(((float *)y)[at], x);
}

#if ELEMENT != 0

// Columns of k whose sum is added to that of the ones before.
#define SEGMENT 1024

// Rows that a block computes.
struct Rows {
    int first, end;
    // For rows sorted by expert the pair of each, of which a row of x has `kept`; else none.
    const int *sources;
    int kept;
};

// Grid: rows, columns / 256. Adds the segments from left to right.
KERNEL_OF(256, 1, add_segments)
(const float *partial, int segments, int m, int n, void *y, int row_y, int out) {
    const int column = blockIdx.y * blockDim.x + threadIdx.x, row = blockIdx.x;
    if (column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < segments; i++) sum = __fadd_rn(sum, partial[((u64)i * m + row) * n + column]);
    put(y, (u64)row * row_y + column, out, sum);
}
REGISTER(add_segments)

#endif
