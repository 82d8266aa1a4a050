// The race check of the twin, where it is compiled with EARNEST_RACES: what the twin tells races.cpp, which has the rules.
//
// Loads and stores of a kernel come by themselves: the compiler puts calls before them (-fsanitize=thread). What the twin does in a kernel's
// name, as copies and operands of matrix instructions, it says by hand, and its own functions that do so are UNWATCHED.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef EARNEST_RACES

#define UNWATCHED __attribute__((noinline, no_sanitize("thread")))
// Variables in shared memory lie together, so that their addresses are known.
#define SHARED_VARIABLE static __attribute__((section("earnest_shared"), aligned(16)))

extern "C" {
// Shared memory begins a block's life: what is `dynamic` and the variables. `stop` leaves the running thread for good.
void earnest_races_block(const unsigned *block, unsigned threads, const void *dynamic, size_t bytes, const void *variables,
                         size_t variable_bytes, void (*stop)());
// From now on a thread of the block runs, or none with -1. False if a hazard was found.
bool earnest_races_thread(int thread);
// All threads of the block have reached a barrier; those of a warp one of their own.
void earnest_races_barrier();
void earnest_races_warp_barrier(unsigned warp);
void earnest_races_read(const void *at, size_t bytes);
void earnest_races_atomic(const void *at, size_t bytes);
// 16 bytes are copied in the background, from the issue (whose stamp is returned) until the wait.
uint32_t earnest_races_copy_begins(const void *to, const void *from);
void earnest_races_copy_ends(const void *to, const void *from, uint32_t issued);
// A product reads 16 bytes, from its issue until the wait.
void earnest_races_product_begins(const void *from);
void earnest_races_product_ends(const void *from);
}

extern "C" char __start_earnest_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_earnest_shared[] __attribute__((weak, visibility("hidden")));

static inline void earnest_races_block_begins(const unsigned *block, unsigned threads, const void *dynamic, size_t bytes, void (*stop)()) {
    const size_t variables = __start_earnest_shared ? __stop_earnest_shared - __start_earnest_shared : 0;
    earnest_races_block(block, threads, dynamic, bytes, __start_earnest_shared, variables, stop);
}

#else

#define UNWATCHED inline
#define SHARED_VARIABLE static

static inline void earnest_races_block_begins(const unsigned *, unsigned, const void *, size_t, void (*)()) {}
static inline bool earnest_races_thread(int) { return true; }
static inline void earnest_races_barrier() {}
static inline void earnest_races_warp_barrier(unsigned) {}
static inline void earnest_races_read(const void *, size_t) {}
static inline void earnest_races_atomic(const void *, size_t) {}
static inline uint32_t earnest_races_copy_begins(const void *, const void *) { return 0; }
static inline void earnest_races_copy_ends(const void *, const void *, uint32_t) {}
static inline void earnest_races_product_begins(const void *) {}
static inline void earnest_races_product_ends(const void *) {}

#endif
