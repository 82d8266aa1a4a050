// Small kernels with one error each, for the tests of the race check: with `broken` 0 they are right. One block of 64 threads, and two
// where it says so. `from` has 256 numbers, `to` 64 and more.

// Lanes of a warp hand numbers on through shared memory. With 2 a shuffle stands where __syncwarp should.
KERNEL_OF(64, 1, planted_warp)
(const int *from, int *to, int broken) {
    __shared__ int numbers[64];
    const int thread = threadIdx.x;
    int x = from[thread];
    numbers[thread] = x;
    if (broken == 0) __syncwarp();
    if (broken == 2) x = __shfl_xor_sync(0xffffffffu, x, 1);
    to[thread] = numbers[thread ^ 1] + x;
}
REGISTER(planted_warp)

// Warps hand numbers on; a barrier of each warp does not order them.
KERNEL_OF(64, 1, planted_block)
(const int *from, int *to, int broken) {
    __shared__ int numbers[64];
    const int thread = threadIdx.x;
    numbers[thread] = from[thread];
    if (broken == 0) __syncthreads();
    else __syncwarp();
    to[thread] = numbers[63 - thread];
}
REGISTER(planted_block)

// The same through global memory.
KERNEL_OF(64, 1, planted_global)
(const int *from, int *to, int broken) {
    const int thread = threadIdx.x;
    to[thread] = from[thread];
    if (broken == 0) __syncthreads();
    to[64 + thread] = to[63 - thread];
}
REGISTER(planted_global)

// What is read must not be overwritten before all have read it.
KERNEL_OF(64, 1, planted_reuse)
(const int *from, int *to, int broken) {
    __shared__ int numbers[64];
    const int thread = threadIdx.x;
    for (int i = 0; i < 3; i++) {
        numbers[thread] = from[thread + i];
        __syncthreads();
        to[thread] = numbers[63 - thread];
        if (broken == 0) __syncthreads();
    }
}
REGISTER(planted_reuse)

// Two blocks write the same number, or with 2 one reads what the other writes.
KERNEL_OF(64, 1, planted_blocks)
(const int *from, int *to, int broken) {
    const int thread = threadIdx.x, block = blockIdx.x;
    if (broken == 2) {
        if (block == 0) to[thread] = from[thread];
        else to[64 + thread] = to[thread];
    } else {
        to[(broken ? 0 : block * 64) + thread] = from[thread] + block;
    }
}
REGISTER(planted_blocks)

// Two blocks count in the same number.
KERNEL_OF(64, 1, planted_sum)
(const int *from, int *to, int broken) {
    if (broken && blockIdx.x == 1) to[0] = to[0] + from[threadIdx.x];
    else atomicAdd(&to[0], from[threadIdx.x]);
}
REGISTER(planted_sum)

// All threads count, and one reads the sum.
KERNEL_OF(64, 1, planted_count)
(const int *from, int *to, int broken) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, from[threadIdx.x]);
    if (broken == 0) __syncthreads();
    if (threadIdx.x == 63) to[0] = sum;
}
REGISTER(planted_count)

// Many threads may set the same flag; with 1 they set it to different values.
KERNEL_OF(64, 1, planted_flag)
(const int *from, int *to, int broken) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x % 8 == 3) flag = broken ? threadIdx.x : 1;
    __syncthreads();
    to[threadIdx.x] = flag + from[0];
}
REGISTER(planted_flag)

// Copies in the background: with 1 a thread reads its own before it waits, with 2 others' without a barrier, with 3 stores to what is still
// being copied, with 4 copies again to what others may still read, with 5 a barrier stands before the wait instead of after it.
KERNEL_OF(64, 1, planted_copy)
(const int *from, int *to, int broken) {
    DYNAMIC_SHARED(memory);
    int *numbers = (int *)memory;
    const int thread = threadIdx.x;
    copy_async(numbers + thread * 4, from + thread * 4, true);
    commit_copies();
    if (broken == 1) to[thread] = numbers[thread * 4];
    if (broken == 3 && thread == 40) numbers[3] = 1;
    if (broken == 5) __syncthreads();
    wait_copies<0>();
    if (broken != 2 && broken != 5) __syncthreads();
    to[thread] = numbers[252 - thread * 4];
    if (broken != 4) __syncthreads();
    copy_async(numbers + thread * 4, from + (63 - thread) * 4, true);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    to[64 + thread] = numbers[252 - thread * 4];
}
REGISTER(planted_copy)

// What is copied changes while it is read: with 1 by another thread, beyond a barrier.
KERNEL_OF(64, 1, planted_source)
(int *from, int *to, int broken) {
    DYNAMIC_SHARED(memory);
    int *numbers = (int *)memory;
    const int thread = threadIdx.x;
    copy_async(numbers + thread * 4, from + thread * 4, true);
    commit_copies();
    if (broken == 0) wait_copies<0>();
    __syncthreads();
    from[252 - thread * 4] = thread;
    __syncthreads();
    wait_copies<0>();
    __syncthreads();
    to[thread] = numbers[thread * 4];
}
REGISTER(planted_source)
