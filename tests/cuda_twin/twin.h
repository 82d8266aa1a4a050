// What the CUDA kernels need to run as C++ on a CPU, for tests: threads of a block as fibers, barriers, warp operations, matrix
// instructions, copies that arrive when they are waited for and not before.
//
// A block runs on one CPU thread, its fibers one after another between barriers, in one of three orders, in two of which each warp runs ahead
// as far as it can. A kernel that lacks a barrier gives different results in different orders, and with EARNEST_RACES its race is found in each
// (races.h). Shared memory is filled with NaN before each block.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "races.h"

#define KERNEL_OF(threads, blocks, name) static void earnest_##name
#define REGISTER(name)                                                                                                             \
    extern "C" __attribute__((visibility("default"))) void twin_##name(void **arguments) { twin::call(earnest_##name, arguments); }
#define DYNAMIC_SHARED(name) u8 *const name = twin::dynamic_shared
#define DEVICE static inline
#define DEVICE_MEMBER inline
#define ALIGNED(n) alignas(n)
#define INFINITE __builtin_inff()
#define __shared__ SHARED_VARIABLE

struct Dim {
    unsigned x, y, z;
};
static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace twin {

[[noreturn]] static void fail(const char *what) {
    std::fprintf(stderr, "cuda twin: %s (block %u %u %u, thread %u)\n", what, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x);
    std::abort();
}

// Fibers: a stack each, and a switch that saves what the calling convention says.
extern "C" void earnest_twin_switch(void **save, void *to);
#if defined(__x86_64__)
asm(R"(
.text
.local earnest_twin_switch
.type earnest_twin_switch, @function
earnest_twin_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size earnest_twin_switch, .-earnest_twin_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.local earnest_twin_switch
.type earnest_twin_switch, %function
earnest_twin_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");
#else
#error "the twin knows x86-64 and AArch64"
#endif

enum State { RUNS, AT_BLOCK, AT_WARP, DONE, STOPPED };
enum Operation { SHUFFLE, ORDER, MATRICES, MULTIPLY, MULTIPLY_E4M3, GROUP_FENCE, GROUP_MULTIPLY, GROUP_COMMIT, GROUP_WAIT };

struct Copy {
    void *to;
    const void *from;
    bool valid;
    unsigned group;
    // Of its issue, for the race check.
    uint32_t stamp;
};

struct Fiber {
    void *stack_pointer = nullptr;
    char *stack = nullptr;
    State state = DONE;
    Operation operation = SHUFFLE;
    unsigned exchanges = 0, groups = 0;
    std::vector<Copy> copies;
};

// What lanes hand each other. Two sides: a lane may begin its next operation while others still read this one's.
struct Exchange {
    uint32_t words[32][6];
    bool decoded;
    float left[16][32], right[32][8];
};

static const size_t STACK = 128 * 1024;
static std::vector<Fiber> fibers;
static std::vector<Exchange> exchanges;
static unsigned threads, current;
static void *scheduler;
static void (*entry)(void **);
static void **arguments;
static unsigned char *dynamic_shared;
static unsigned shared_bytes;
// Of each 16 bytes of dynamic shared memory: copies that may arrive at any time, threads whose products (warp_groups.h) may read them at any
// time, and 1 + the thread whose copy the async proxy does not see yet.
struct Piece {
    unsigned arriving, reading, unpublished;
};
static std::vector<Piece> pieces;
// What other headers do before a block and after it.
static void (*before_block)() = [] {};
static void (*after_block)() = [] {};

// The piece of dynamic shared memory at an address; none elsewhere.
static Piece *piece_at(const void *p) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(dynamic_shared);
    return at / 16 < pieces.size() ? &pieces[at / 16] : nullptr;
}

static void yield_to_scheduler(State state) {
    Fiber &self = fibers[current];
    self.state = state;
    earnest_twin_switch(&self.stack_pointer, scheduler);
}

static void begin() {
    entry(arguments);
    yield_to_scheduler(DONE);
    fail("a finished thread went on");
}

static void prepare(Fiber &fiber) {
    if (!fiber.stack) fiber.stack = static_cast<char *>(std::malloc(STACK));
    fiber.state = RUNS;
    fiber.exchanges = fiber.groups = 0;
    fiber.copies.clear();
    uintptr_t top = (reinterpret_cast<uintptr_t>(fiber.stack) + STACK) / 64 * 64;
#if defined(__x86_64__)
    void **at = reinterpret_cast<void **>(top) - 8;
    for (int i = 0; i < 8; i++) at[i] = nullptr;
    at[6] = reinterpret_cast<void *>(begin);
    fiber.stack_pointer = at;
#else
    void **at = reinterpret_cast<void **>(top) - 20;
    for (int i = 0; i < 20; i++) at[i] = nullptr;
    at[11] = reinterpret_cast<void *>(begin);
    fiber.stack_pointer = at;
#endif
}

// The exchange of this lane's next operation.
static Exchange &exchange() {
    Fiber &self = fibers[current];
    return exchanges[current / 32 * 2 + self.exchanges % 2];
}

static Exchange &meet(Operation operation) {
    Exchange &x = exchange();
    x.decoded = false;
    fibers[current].operation = operation;
    fibers[current].exchanges++;
    yield_to_scheduler(AT_WARP);
    return x;
}

// Leaves a thread whose race was found.
static void stop() { yield_to_scheduler(STOPPED); }

// A race was found, which ends the launch.
static bool is_stopped;

// Runs a warp's threads that can run, in the order, and frees those that have all reached a warp operation; false if nothing moved.
static bool run_warp(unsigned warp, int order, unsigned &alive) {
    bool moved = false;
    unsigned waiting = 0;
    for (unsigned i = 0; i < 32; i++) {
        const unsigned t = warp * 32 + (order == 0 ? i : order == 1 ? 31 - i : (i * 5 + 11) % 32);
        Fiber &fiber = fibers[t];
        if (fiber.state == RUNS) {
            moved = true;
            current = threadIdx.x = t;
            earnest_races_thread(static_cast<int>(t));
            earnest_twin_switch(&scheduler, fiber.stack_pointer);
            if (!earnest_races_thread(-1)) {
                is_stopped = true;
                return false;
            }
            if (fiber.state == DONE) alive--;
        }
        waiting += fiber.state == AT_WARP;
    }
    if (waiting < 32) return moved;
    for (unsigned l = 0; l < 32; l++) {
        Fiber &fiber = fibers[warp * 32 + l];
        if (fiber.operation != fibers[warp * 32].operation) fail("lanes of a warp are at different operations");
        fiber.state = RUNS;
    }
    if (fibers[warp * 32].operation == ORDER) earnest_races_warp_barrier(warp);
    return true;
}

// The warps take turns at every warp operation in the first order; in the others each runs as far as it can before the next one begins.
static void run_block(int order) {
    for (unsigned t = 0; t < threads; t++) prepare(fibers[t]);
    const unsigned warps = threads / 32;
    unsigned alive = threads;
    while (alive > 0) {
        bool moved = false;
        for (unsigned i = 0; i < warps; i++)
            while (run_warp(order == 1 ? warps - 1 - i : i, order, alive)) {
                moved = true;
                if (order == 0) break;
            }
        if (is_stopped) return;
        unsigned waiting = 0;
        for (unsigned t = 0; t < threads; t++) waiting += fibers[t].state == AT_BLOCK;
        if (waiting > 0 && waiting == threads) {
            for (unsigned t = 0; t < threads; t++) fibers[t].state = RUNS;
            earnest_races_barrier();
            moved = true;
        }
        if (alive > 0 && !moved) fail("a barrier or a warp operation that not all threads reach");
    }
    for (unsigned t = 0; t < threads; t++)
        if (!fibers[t].copies.empty()) fail("a thread ended before its copies arrived");
    after_block();
}

template <class... A, size_t... I> static void call_with(void (*kernel)(A...), void **a, std::index_sequence<I...>) {
    kernel(*static_cast<A *>(a[I])...);
}
template <class... A> static void call(void (*kernel)(A...), void **a) { call_with(kernel, a, std::index_sequence_for<A...>{}); }

} // namespace twin

extern "C" __attribute__((visibility("default"))) void earnest_twin_run(void (*kernel)(void **), const unsigned *grid, unsigned block,
                                                                       unsigned shared, void **arguments, int order) {
    using namespace twin;
    if (block == 0 || block % 32 != 0 || block > 1024) fail("a block is not made of whole warps");
    threads = block;
    if (fibers.size() < block) fibers.resize(block);
    exchanges.resize(block / 32 * 2);
    entry = kernel;
    twin::arguments = arguments;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block, 1, 1};
    std::vector<unsigned char> memory(shared + 64);
    dynamic_shared = reinterpret_cast<unsigned char *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    shared_bytes = shared;
    is_stopped = false;
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                std::memset(dynamic_shared, 0xff, shared);
                pieces.assign(shared / 16, {});
                before_block();
                earnest_races_block_begins(&blockIdx.x, threads, dynamic_shared, shared, stop);
                run_block(order);
                if (is_stopped) return;
            }
}

// The device's functions.

static inline void __syncthreads() { twin::yield_to_scheduler(twin::AT_BLOCK); }
static inline void __syncwarp() { twin::meet(twin::ORDER); }

template <class V> static V __shfl_xor_sync(unsigned, V value, int mask) {
    static_assert(sizeof(V) == 4, "words only");
    const unsigned lane = threadIdx.x % 32;
    std::memcpy(&twin::exchange().words[lane][0], &value, 4);
    twin::Exchange &x = twin::meet(twin::SHUFFLE);
    V other;
    std::memcpy(&other, &x.words[lane ^ mask][0], 4);
    return other;
}

static inline uint32_t __ballot_sync(unsigned, bool is_set) {
    twin::exchange().words[threadIdx.x % 32][0] = is_set;
    const twin::Exchange &x = twin::meet(twin::SHUFFLE);
    uint32_t all = 0;
    for (int l = 0; l < 32; l++) all |= x.words[l][0] << l;
    return all;
}
static inline int __popc(uint32_t x) { return __builtin_popcount(x); }

static inline float __uint_as_float(uint32_t x) {
    float f;
    std::memcpy(&f, &x, 4);
    return f;
}
static inline uint32_t float_bits(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    return u;
}
static inline uint32_t __float_as_uint(float x) { return float_bits(x); }
// Fibers take turns, so nothing comes between.
template <class V, class W> UNWATCHED static V atomicAdd(V *at, W by) {
    earnest_races_atomic(at, sizeof *at);
    const V before = *at;
    *at += by;
    return before;
}
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

// Rounded to nearest, ties to even.
static inline uint16_t to_bf16_bits(float x) {
    const uint32_t u = float_bits(x);
    if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline float from_f16_bits(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * std::ldexp(static_cast<float>(fraction), -24);
    return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
}
static inline uint16_t to_f16_bits(float x) {
    const uint32_t u = float_bits(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    if (magnitude > 0x7f800000) return 0x7fff;
    if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
    if (magnitude < 0x38800000) {
        // A multiple of 2^-24, by the rounding of the CPU.
        return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(std::ldexp(std::fabs(x), 24))));
    }
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}
static inline float exp2_fast(float x) {
    const float y = std::exp2(x);
    return y < 1.17549435e-38f ? 0.0f : y;
}

#if ELEMENT == 2
static inline float element(uint16_t bits) { return from_f16_bits(bits); }
#else
static inline float element(uint16_t bits) { return __uint_as_float(static_cast<uint32_t>(bits) << 16); }
#endif

// A lane's row is read when the lane arrives: later writes by others do not reach it.
UNWATCHED static void read_row(uint32_t (&words)[6], const void *row) {
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0) twin::fail("a row of a matrix is not aligned to 16 bytes");
    earnest_races_read(row, 16);
    std::memcpy(words, row, 16);
}
UNWATCHED static uint32_t matrix_pair(const twin::Exchange &x, int matrix, int row, int column, bool is_transposed) {
    uint32_t pair = 0;
    for (int e = 0; e < 2; e++) {
        const int r = is_transposed ? column + e : row, c = is_transposed ? row : column + e;
        uint16_t bits;
        std::memcpy(&bits, reinterpret_cast<const char *>(&x.words[matrix * 8 + r][0]) + 2 * c, 2);
        pair |= static_cast<uint32_t>(bits) << 16 * e;
    }
    return pair;
}
static inline void load_matrices(uint32_t (&r)[4], const void *row) {
    const int lane = threadIdx.x % 32;
    read_row(twin::exchange().words[lane], row);
    const twin::Exchange &x = twin::meet(twin::MATRICES);
    for (int m = 0; m < 4; m++) r[m] = matrix_pair(x, m, lane / 4, lane % 4 * 2, false);
}
static inline void load_matrices_transposed(uint32_t (&r)[4], const void *row) {
    const int lane = threadIdx.x % 32;
    read_row(twin::exchange().words[lane], row);
    const twin::Exchange &x = twin::meet(twin::MATRICES);
    for (int m = 0; m < 4; m++) r[m] = matrix_pair(x, m, lane / 4, lane % 4 * 2, true);
}

// Products of 16-bit floats are exact in f32, so multiplying and adding is a fused multiply-add.
UNWATCHED static void add_products(float (&c)[4], twin::Exchange &x, int lane) {
    if (!x.decoded) {
        x.decoded = true;
        for (int l = 0; l < 32; l++)
            for (int e = 0; e < 2; e++) {
                const int row = l / 4, k = l % 4 * 2 + e, shift = 16 * e;
                x.left[row][k] = element(static_cast<uint16_t>(x.words[l][0] >> shift));
                x.left[row + 8][k] = element(static_cast<uint16_t>(x.words[l][1] >> shift));
                x.left[row][k + 8] = element(static_cast<uint16_t>(x.words[l][2] >> shift));
                x.left[row + 8][k + 8] = element(static_cast<uint16_t>(x.words[l][3] >> shift));
                x.right[k][row] = element(static_cast<uint16_t>(x.words[l][4] >> shift));
                x.right[k + 8][row] = element(static_cast<uint16_t>(x.words[l][5] >> shift));
            }
    }
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) c[i] += x.left[row][k] * x.right[k][column];
    }
}
static inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const int lane = threadIdx.x % 32;
    uint32_t *mine = twin::exchange().words[lane];
    for (int i = 0; i < 4; i++) mine[i] = a[i];
    mine[4] = b0;
    mine[5] = b1;
    twin::Exchange &x = twin::meet(twin::MULTIPLY);
    // A copy: what has its address taken is watched.
    float sums[4] = {c[0], c[1], c[2], c[3]};
    add_products(sums, x, lane);
    for (int i = 0; i < 4; i++) c[i] = sums[i];
}

// E4M3: to nearest, ties to even; beyond 448 to 448; 0x7f for what is not a number.
static inline uint8_t to_e4m3(float x) {
    if (std::isnan(x)) return 0x7f;
    const uint8_t sign = std::signbit(x) ? 0x80 : 0;
    const float a = std::fmin(std::fabs(x), 448.0f);
    int exponent;
    std::frexp(a, &exponent);
    // Steps of a 512th below 2^-6, of an eighth of the power of two from there on.
    const int power = a == 0.0f ? -6 : std::max(exponent - 1, -6);
    const int steps = static_cast<int>(std::nearbyint(std::ldexp(a, 3 - power)));
    return sign | std::min(0x7e, (power + 6) * 8 + steps);
}
static inline float from_e4m3(uint8_t code) {
    const int exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7f) == 0x7f) return __uint_as_float(0x7fc00000);
    const float a = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    return code & 0x80 ? -a : a;
}
static inline uint16_t to_e4m3_pair(float low, float high) { return to_e4m3(low) | to_e4m3(high) << 8; }

// Products of two codes are exact in f32.
UNWATCHED static void add_products_e4m3(float (&c)[4], twin::Exchange &x, int lane) {
    if (!x.decoded) {
        x.decoded = true;
        for (int l = 0; l < 32; l++)
            for (int e = 0; e < 4; e++) {
                const int row = l / 4, k = l % 4 * 4 + e;
                const auto code = [&](int word) { return from_e4m3(static_cast<uint8_t>(x.words[l][word] >> 8 * e)); };
                x.left[row][k] = code(0);
                x.left[row + 8][k] = code(1);
                x.left[row][k + 16] = code(2);
                x.left[row + 8][k + 16] = code(3);
                x.right[k][row] = code(4);
                x.right[k + 16][row] = code(5);
            }
    }
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 32; k++) c[i] += x.left[row][k] * x.right[k][column];
    }
}
static inline void multiply_add_e4m3(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const int lane = threadIdx.x % 32;
    uint32_t *mine = twin::exchange().words[lane];
    for (int i = 0; i < 4; i++) mine[i] = a[i];
    mine[4] = b0;
    mine[5] = b1;
    twin::Exchange &x = twin::meet(twin::MULTIPLY_E4M3);
    // A copy: what has its address taken is watched.
    float sums[4] = {c[0], c[1], c[2], c[3]};
    add_products_e4m3(sums, x, lane);
    for (int i = 0; i < 4; i++) c[i] = sums[i];
}

static inline void copy_async(void *to, const void *from, bool valid) {
    if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
        twin::fail("a copy is not aligned to 16 bytes");
    const uint32_t stamp = earnest_races_copy_begins(to, valid ? from : nullptr);
    if (twin::Piece *piece = twin::piece_at(to)) {
        if (piece->reading) twin::fail("a copy to what a product may still read");
        piece->arriving++;
    }
    twin::Fiber &self = twin::fibers[twin::current];
    self.copies.push_back({to, from, valid, self.groups, stamp});
}
UNWATCHED static void arrive(const twin::Copy &copy) {
    earnest_races_copy_ends(copy.to, copy.valid ? copy.from : nullptr, copy.stamp);
    if (copy.valid) std::memcpy(copy.to, copy.from, 16);
    else std::memset(copy.to, 0, 16);
}
static inline void commit_copies() { twin::fibers[twin::current].groups++; }
template <int N> static inline void wait_copies() {
    twin::Fiber &self = twin::fibers[twin::current];
    size_t done = 0;
    while (done < self.copies.size() && self.copies[done].group + N < self.groups) {
        const twin::Copy &copy = self.copies[done++];
        arrive(copy);
        if (twin::Piece *piece = twin::piece_at(copy.to)) {
            piece->arriving--;
            piece->unpublished = twin::current + 1;
        }
    }
    self.copies.erase(self.copies.begin(), self.copies.begin() + done);
}
