// From logits to the next token.

// Grid: rows, vocab / 1024. logits = cap * tanh(logits / cap).
KERNEL_OF(256, 1, cap_logits)
(float *logits, int vocab, float cap) {
    for (int j = 0; j < 4; j++) {
        const int i = blockIdx.y * 1024 + j * 256 + threadIdx.x;
        const u64 at = (u64)blockIdx.x * vocab + i;
        if (i < vocab) logits[at] = __fmul_rn(cap, tanhf(__fdiv_rn(logits[at], cap)));
    }
}
REGISTER(cap_logits)

#define CHOICE_THREADS 512

struct ALIGNED(16) Wish {
    // Random number in 0..1.
    double uniform;
    // 0 takes the most probable token.
    float temperature;
    // Log-probability wanted of this token; -1 for none.
    int target;
};

struct ALIGNED(16) Chosen {
    int token;
    // A logit is not a number or infinite upwards.
    int unsound;
    // Of the target.
    float logprob;
    int unused;
};

// Sum of doubles over the block: a fixed tree.
DEVICE double block_sum_double(double x, double *scratch) {
    __syncthreads();
    scratch[threadIdx.x] = x;
    for (int step = CHOICE_THREADS / 2; step > 0; step >>= 1) {
        __syncthreads();
        if (threadIdx.x < step) scratch[threadIdx.x] = scratch[threadIdx.x] + scratch[threadIdx.x + step];
    }
    __syncthreads();
    return scratch[0];
}

// Grid: rows. The largest logit (the smallest id on ties), or one drawn from softmax(logits / temperature): the first token at
// which the cumulated weight exceeds uniform * total, in the order of ids.
KERNEL_OF(CHOICE_THREADS, 1, choose)
(const float *logits, int vocab, const u8 *wishes, u8 *chosen, int *sampled) {
    __shared__ float tops[CHOICE_THREADS];
    __shared__ int ids[CHOICE_THREADS];
    __shared__ double sums[CHOICE_THREADS];
    __shared__ int unsound, drawn;
    const float *row = logits + (u64)blockIdx.x * vocab;
    const Wish wish = ((const Wish *)wishes)[blockIdx.x];
    const int thread = threadIdx.x;
    if (thread == 0) unsound = 0;
    __syncthreads();
    float top = -INFINITE;
    int id = vocab;
    bool bad = false;
    for (int i = thread; i < vocab; i += CHOICE_THREADS) {
        const float x = row[i];
        bad |= !(x < INFINITE);
        if (x > top || (x == top && i < id)) {
            top = x;
            id = i;
        }
    }
    if (bad) unsound = 1;
    tops[thread] = top;
    ids[thread] = id;
    for (int step = CHOICE_THREADS / 2; step > 0; step >>= 1) {
        __syncthreads();
        if (thread < step) {
            const float x = tops[thread + step];
            const int i = ids[thread + step];
            if (x > tops[thread] || (x == tops[thread] && i < ids[thread])) {
                tops[thread] = x;
                ids[thread] = i;
            }
        }
    }
    __syncthreads();
    top = tops[0];
    id = ids[0];
    // Minus infinity everywhere is no distribution.
    const bool sound = !unsound && top > -INFINITE;
    float logprob = 0.0f;
    if (sound && wish.target >= 0) {
        double sum = 0.0;
        for (int i = thread; i < vocab; i += CHOICE_THREADS) sum += exp((double)row[i] - (double)top);
        sum = block_sum_double(sum, sums);
        logprob = (float)((double)row[wish.target] - (double)top - log(sum));
    }
    if (sound && wish.temperature > 0.0f) {
        // Each thread has a stretch of ids of its own.
        const int stretch = (vocab + CHOICE_THREADS - 1) / CHOICE_THREADS;
        const int first = min(vocab, thread * stretch), last = min(vocab, first + stretch);
        double mine = 0.0;
        for (int i = first; i < last; i++) mine += (double)expf(__fdiv_rn(__fsub_rn(row[i], top), wish.temperature));
        __syncthreads();
        sums[thread] = mine;
        __syncthreads();
        if (thread == 0) {
            double total = 0.0;
            for (int t = 0; t < CHOICE_THREADS; t++) total += sums[t];
            double left = wish.uniform * total;
            int t = 0;
            while (t < CHOICE_THREADS - 1 && left >= sums[t]) left -= sums[t++];
            const int begin = min(vocab, t * stretch), end = min(vocab, begin + stretch);
            // Rounding can leave a sliver beyond the last one.
            int found = vocab - 1;
            for (int i = begin; i < end; i++) {
                left -= (double)expf(__fdiv_rn(__fsub_rn(row[i], top), wish.temperature));
                if (left < 0.0) {
                    found = i;
                    break;
                }
            }
            drawn = found;
        }
        __syncthreads();
        id = drawn;
    }
    if (thread == 0) {
        Chosen c;
        c.token = sound ? id : 0;
        c.unsound = !sound;
        c.logprob = logprob;
        c.unused = 0;
        ((Chosen *)chosen)[blockIdx.x] = c;
        sampled[blockIdx.x] = c.token;
    }
}
REGISTER(choose)
