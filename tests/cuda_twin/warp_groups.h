// The instructions of a warp group (kernels/warp_groups.cuh) as the PTX ISA defines them, for the twin.
//
// A product reads its operands from shared memory through its descriptors, bit by bit, at some time between its issue and the end of the
// wait for it. Here it reads at both ends, and memory that changed between them ends the test; so does a copy that may arrive there
// meanwhile, and memory that a copy wrote and no proxy fence published. Its accumulators are poisoned until the wait, so that a missing commit or wait gives what is not a number, and
// one that is written meanwhile ends the test.
#pragma once
namespace twin {

// Address of the first byte of dynamic shared memory: no multiple of 1024, as a kernel must not expect one.
static const uint32_t SHARED_BASE = 1024 + 208;
static const uint32_t POISON = 0x7fa0dead;

// A product of all warp groups' threads, in the order of their issue.
struct Product {
    uint64_t a, b;
    int n;
    bool e4m3, adds;
    // Threads that issued it.
    unsigned threads = 0;
    // Warps that the race check heard of, at its issue and at its end.
    bool begun[4] = {}, ended[4] = {};
    // Both operands as they were at its issue: rows of 32 bytes, and their numbers.
    std::vector<unsigned char> left_bytes, right_bytes;
    std::vector<float> left, right;
};

// A product that a thread has not waited for, and the group that it belongs to.
struct Issued {
    size_t product;
    float *d;
    unsigned group;
};

// Values of accumulators that are poisoned.
struct Accumulator {
    float *d;
    std::vector<float> values;
};

struct GroupThread {
    size_t issued = 0;
    unsigned groups = 0;
    bool fenced = false;
    std::vector<Issued> pending;
    std::vector<Accumulator> accumulators;
};

static std::vector<std::vector<Product>> products;
static std::vector<GroupThread> group_threads;

static void begin_groups() {
    products.assign((threads + 127) / 128, {});
    group_threads.assign(threads, {});
}
static void end_groups() {
    for (unsigned t = 0; t < threads; t++)
        if (!group_threads[t].pending.empty()) fail("a thread ended before its products did");
    for (const auto &of : products)
        for (const Product &product : of)
            if (product.threads != 128) fail("a product that not all threads of a warp group reach");
}
static const bool groups_are_checked = [] {
    before_block = begin_groups;
    after_block = end_groups;
    return true;
}();

// 16 bytes of a matrix with its rows along k: piece `piece` of row `row`.
UNWATCHED static const unsigned char *piece_of(uint64_t descriptor, int row, int piece) {
    if (descriptor & 0x3ff1c000c000c000) fail("a descriptor with reserved bits");
    const uint32_t start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4;
    const uint32_t stride = (descriptor >> 32 & 0x3fff) << 4, base = descriptor >> 49 & 7, mode = descriptor >> 62;
    // Bits that the swizzle changes: none, or of a row of 128, 64 or 32 bytes.
    const uint32_t bits = mode == 0 ? 0 : 4 - mode, mask = (1u << bits) - 1;
    uint32_t at = start + row / 8 * stride + row % 8 * (16 << bits);
    at += mode == 0 ? piece * leading : piece * 16;
    if (base != 0 || (start >> 7 & mask) != 0) fail("a swizzled matrix that does not begin with its pattern");
    at ^= (at >> 7 & mask) << 4;
    if (at < SHARED_BASE || at + 16 > SHARED_BASE + shared_bytes) fail("a descriptor points beyond shared memory");
    return dynamic_shared + (at - SHARED_BASE);
}

UNWATCHED static std::vector<unsigned char> gather(uint64_t descriptor, int rows) {
    std::vector<unsigned char> all(rows * 32);
    for (int i = 0; i < rows * 2; i++) {
        const unsigned char *from = piece_of(descriptor, i / 2, i % 2);
        if (piece_at(from)->arriving) fail("a product reads what a copy may still write");
        if (piece_at(from)->unpublished) fail("a product reads what was copied without a proxy fence");
        std::memcpy(&all[i * 16], from, 16);
    }
    return all;
}

// Notes that so many more threads wait for a product that reads these matrices.
UNWATCHED static void reads(const Product &product, int by) {
    for (int i = 0; i < 64 * 2; i++) piece_at(piece_of(product.a, i / 2, i % 2))->reading += by;
    for (int i = 0; i < product.n * 2; i++) piece_at(piece_of(product.b, i / 2, i % 2))->reading += by;
}

// Tells the race check of a product's operands, once for each warp: none is promised to read less than all of them.
UNWATCHED static void watch(const Product &product, bool (&warps)[4], void (*what)(const void *)) {
    if (std::exchange(warps[current / 32 % 4], true)) return;
    for (int i = 0; i < 64 * 2; i++) what(piece_of(product.a, i / 2, i % 2));
    for (int i = 0; i < product.n * 2; i++) what(piece_of(product.b, i / 2, i % 2));
}

static std::vector<float> numbers(const std::vector<unsigned char> &bytes, bool e4m3) {
    std::vector<float> all(e4m3 ? bytes.size() : bytes.size() / 2);
    for (size_t i = 0; i < all.size(); i++)
        all[i] = e4m3 ? from_e4m3(bytes[i]) : element(static_cast<uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8));
    return all;
}

static void issue(uint64_t a, uint64_t b, int n, bool e4m3, bool adds, float *d) {
    if (threads % 128 != 0) fail("a block is not made of whole warp groups");
    GroupThread &self = group_threads[current];
    auto &of = products[current / 128];
    const size_t number = self.issued++;
    const bool is_first = number == of.size();
    if (is_first) of.push_back({a, b, n, e4m3, adds});
    Product &product = of[number];
    if (product.a != a || product.b != b || product.n != n || product.e4m3 != e4m3 || product.adds != adds)
        fail("threads of a warp group issue different products");
    product.threads++;
    watch(product, product.begun, earnest_races_product_begins);
    if (is_first) {
        product.left = numbers(product.left_bytes = gather(a, 64), e4m3);
        product.right = numbers(product.right_bytes = gather(b, n), e4m3);
        reads(product, 128);
    }
    bool running = false;
    for (const Issued &other : self.pending) {
        if (other.d == d && of[other.product].n != n) fail("an accumulator of products of different shapes");
        running |= other.d == d;
    }
    if (!running) {
        if (!self.fenced) fail("a product whose accumulators no wgmma.fence orders");
        self.accumulators.push_back({d, std::vector<float>(d, d + n / 2)});
        for (int i = 0; i < n / 2; i++) std::memcpy(&d[i], &POISON, 4);
    }
    self.pending.push_back({number, d, self.groups});
}

// Element i of a thread's part of a product, added to `sum`.
UNWATCHED static float element_of(const Product &product, int thread, int i, float sum) {
    const int warp = thread / 32 % 4, lane = thread % 32;
    const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    const int width = product.e4m3 ? 32 : 16;
    const float *left = product.left.data() + row * width, *right = product.right.data() + column * width;
    for (int k = 0; k < width; k++) sum += left[k] * right[k];
    return sum;
}

static void finish(unsigned newest) {
    GroupThread &self = group_threads[current];
    const int lane = current % 32;
    size_t done = 0;
    for (; done < self.pending.size() && self.pending[done].group + newest < self.groups; done++) {
        const Issued &one = self.pending[done];
        Product &product = products[current / 128][one.product];
        if (lane == 0 && (gather(product.a, 64) != product.left_bytes || gather(product.b, product.n) != product.right_bytes))
            fail("shared memory changed while a product read it");
        reads(product, -1);
        watch(product, product.ended, earnest_races_product_ends);
        auto accumulator = std::find_if(self.accumulators.begin(), self.accumulators.end(), [&](const Accumulator &of) { return of.d == one.d; });
        for (int i = 0; i < product.n / 2; i++)
            accumulator->values[i] = element_of(product, current, i, product.adds ? accumulator->values[i] : 0.0f);
        const auto same = [&](const Issued &other) { return other.d == one.d; };
        if (std::any_of(self.pending.begin() + done + 1, self.pending.end(), same)) continue;
        for (int i = 0; i < product.n / 2; i++) {
            if (float_bits(one.d[i]) != POISON) fail("an accumulator was written while a product used it");
            one.d[i] = accumulator->values[i];
        }
        self.accumulators.erase(accumulator);
        // The program may use it now, so the next product needs a fence.
        self.fenced = false;
    }
    self.pending.erase(self.pending.begin(), self.pending.begin() + done);
}

} // namespace twin

static inline uint32_t shared_address(const void *p) {
    return twin::SHARED_BASE + static_cast<uint32_t>(static_cast<const unsigned char *>(p) - twin::dynamic_shared);
}
static inline void publish_to_products() {
    for (twin::Piece &piece : twin::pieces)
        if (piece.unpublished == twin::current + 1) piece.unpublished = 0;
}
static inline void order_accumulators() {
    twin::meet(twin::GROUP_FENCE);
    twin::group_threads[twin::current].fenced = true;
}
template <int COUNT> static inline void multiply_async(float (&d)[COUNT], uint64_t a, uint64_t b, bool adds) {
    twin::meet(twin::GROUP_MULTIPLY);
    twin::issue(a, b, 2 * COUNT, false, adds, d);
}
template <int COUNT> static inline void multiply_async_e4m3(float (&d)[COUNT], uint64_t a, uint64_t b, bool adds) {
    twin::meet(twin::GROUP_MULTIPLY);
    twin::issue(a, b, 2 * COUNT, true, adds, d);
}
static inline void commit_products() {
    twin::meet(twin::GROUP_COMMIT);
    twin::group_threads[twin::current].groups++;
}
template <int N> static inline void wait_products() {
    twin::meet(twin::GROUP_WAIT);
    twin::finish(N);
}
template <int COUNT> static inline void take(float (&)[COUNT]) {}
