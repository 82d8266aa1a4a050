// From logits to the next token.

// Grid: rows, vocab / 1024. logits *= scale, then cap * tanh(logits / cap); a cap of 0 is none.
KERNEL_OF(256, 1, cap_logits)
(float *logits, int vocab, float scale, float cap) {
    for (int j = 0; j < 4; j++) {
        const int i = blockIdx.y * 1024 + j * 256 + threadIdx.x;
        const u64 at = (u64)blockIdx.x * vocab + i;
        if (i >= vocab) continue;
        const float x = __fmul_rn(logits[at], scale);
        logits[at] = cap > 0.0f ? __fmul_rn(cap, tanhf(__fdiv_rn(x, cap))) : x;
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
    // Filters as the CPU's sampler has them: 0, 1 and 0 keep all.
    int top_k;
    float top_p, min_p;
    int unused;
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
        if ((int)threadIdx.x < step) scratch[threadIdx.x] = scratch[threadIdx.x] + scratch[threadIdx.x + step];
    }
    __syncthreads();
    return scratch[0];
}

// Bits of a float in the order of floats.
DEVICE u32 ordered(float x) {
    const u32 bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// What may be drawn: weights e^((logit - top) / temperature) of logits from `bound` on.
struct Candidates {
    const float *row;
    int vocab;
    float top, temperature, bound;
};

// 0 for what is no candidate.
DEVICE float weight(const Candidates &c, int i) {
    const float x = c.row[i];
    return x >= c.bound ? expf(__fdiv_rn(__fsub_rn(x, c.top), c.temperature)) : 0.0f;
}

// A weight as an integer: sums of those do not depend on their order.
DEVICE u64 mass(float w) { return (u64)((double)w * 1099511627776.0); }

// The k-th largest logit, by its bits from the highest on.
DEVICE float kth_largest(const float *row, int vocab, int k, int *counts) {
    __shared__ u32 shared_prefix;
    __shared__ int shared_left;
    u32 prefix = 0, mask = 0;
    int left = k;
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();
        if (threadIdx.x < 256) counts[threadIdx.x] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < vocab; i += CHOICE_THREADS) {
            const u32 key = ordered(row[i]);
            if ((key & mask) == prefix) atomicAdd(&counts[key >> shift & 255], 1);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = 255;
            while (digit > 0 && counts[digit] < left) left -= counts[digit--];
            shared_prefix = prefix | (u32)digit << shift;
            shared_left = left;
        }
        __syncthreads();
        prefix = shared_prefix;
        left = shared_left;
        mask |= 255u << shift;
    }
    return __uint_as_float(prefix & 0x80000000u ? prefix ^ 0x80000000u : ~prefix);
}

// Where the sum of masses, the largest weights first, reaches `goal`: that weight, and the mass of all larger ones.
struct Place {
    float weight;
    u64 before;
};

DEVICE Place reach(const Candidates &c, u64 goal, u64 *masses) {
    __shared__ u32 shared_prefix;
    __shared__ u64 shared_before;
    u32 prefix = 0, mask = 0;
    u64 before = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();
        if (threadIdx.x < 256) masses[threadIdx.x] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < c.vocab; i += CHOICE_THREADS) {
            const float w = weight(c, i);
            // Weights are not negative, so their bits are in their order.
            const u32 key = __float_as_uint(w);
            if (mass(w) > 0 && (key & mask) == prefix) atomicAdd(&masses[key >> shift & 255], mass(w));
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = 255;
            while (digit > 0 && before + masses[digit] < goal) before += masses[digit--];
            shared_prefix = prefix | (u32)digit << shift;
            shared_before = before;
        }
        __syncthreads();
        prefix = shared_prefix;
        before = shared_before;
        mask |= 255u << shift;
    }
    const Place place = {__uint_as_float(prefix), before};
    return place;
}

// Mass of the candidates of at least this weight.
DEVICE u64 mass_from(const Candidates &c, float least, u64 *masses) {
    __syncthreads();
    if (threadIdx.x == 0) masses[0] = 0;
    __syncthreads();
    u64 mine = 0;
    for (int i = threadIdx.x; i < c.vocab; i += CHOICE_THREADS) {
        const float w = weight(c, i);
        if (w >= least) mine += mass(w);
    }
    atomicAdd(&masses[0], mine);
    __syncthreads();
    return masses[0];
}

// Which of the candidates of this weight is the n-th, in the order of ids.
DEVICE int nth_of_weight(const Candidates &c, float w, u64 n, int *counts) {
    __shared__ int found;
    const int stretch = (c.vocab + CHOICE_THREADS - 1) / CHOICE_THREADS;
    const int first = min(c.vocab, threadIdx.x * stretch), last = min(c.vocab, first + stretch);
    int mine = 0;
    for (int i = first; i < last; i++) mine += weight(c, i) == w;
    __syncthreads();
    counts[threadIdx.x] = mine;
    if (threadIdx.x == 0) found = c.vocab - 1;
    __syncthreads();
    u64 before = 0;
    for (int t = 0; t < (int)threadIdx.x; t++) before += counts[t];
    if (before < n && n <= before + mine)
        for (int i = first; i < last; i++)
            if (weight(c, i) == w && ++before == n) {
                found = i;
                break;
            }
    __syncthreads();
    return found;
}

// A token drawn in the order of falling weights from the most probable ones that reach top_p of the mass.
DEVICE int draw_most_probable(const Candidates &c, const Wish &wish, u64 *masses, int *counts) {
    const u64 all = mass_from(c, 0.0f, masses);
    const u64 goal = (u64)ceil((double)wish.top_p * (double)all);
    const Place last = reach(c, goal > 0 ? goal : 1, masses);
    u64 kept;
    if (last.weight < wish.min_p) {
        kept = mass_from(c, wish.min_p, masses);
    } else {
        // Of equal weights as many as are needed.
        const u64 one = mass(last.weight) > 0 ? mass(last.weight) : 1;
        kept = last.before + (goal - last.before + one - 1) / one * one;
    }
    u64 target = (u64)(wish.uniform * (double)kept) + 1;
    if (target > kept) target = kept;
    const Place drawn = reach(c, target, masses);
    const u64 one = mass(drawn.weight) > 0 ? mass(drawn.weight) : 1;
    return nth_of_weight(c, drawn.weight, (target - drawn.before + one - 1) / one, counts);
}

// Grid: rows. The largest logit (the smallest id on ties), or one drawn from softmax(logits / temperature) after the filters: the first
// token at which the cumulated weight exceeds uniform * total, in the order of ids or, with top_p, of falling weights.
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
        __shared__ u64 masses[256];
        Candidates c = {row, vocab, top, wish.temperature, -INFINITE};
        if (wish.top_k > 0 && wish.top_k < vocab) c.bound = kth_largest(row, vocab, wish.top_k, ids);
        if (wish.top_p < 1.0f) {
            id = draw_most_probable(c, wish, masses, ids);
        } else {
            // Each thread has a stretch of ids of its own.
            const int stretch = (vocab + CHOICE_THREADS - 1) / CHOICE_THREADS;
            const int first = min(vocab, thread * stretch), last = min(vocab, first + stretch);
            double mine = 0.0;
            for (int i = first; i < last; i++) {
                const float w = weight(c, i);
                if (w >= wish.min_p) mine += (double)w;
            }
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
                // Rounding can leave a sliver beyond the last candidate.
                int found = -1;
                for (int i = begin; i < end && left >= 0.0; i++) {
                    const float w = weight(c, i);
                    if (w > 0.0f && w >= wish.min_p) {
                        left -= (double)w;
                        found = i;
                    }
                }
                drawn = found < 0 ? id : found;
            }
            __syncthreads();
            id = drawn;
        }
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
