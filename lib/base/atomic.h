/* atomic.h -- words that several threads or processes read and write at once. */
#ifndef WEIR_BASE_ATOMIC_H
#define WEIR_BASE_ATOMIC_H

#include "base/base.h"

/* Any integer or pointer that stands by itself, such as a counter or a hint. */
#define weir__get(p)        __atomic_load_n((p), __ATOMIC_RELAXED)
#define weir__set(p, value) __atomic_store_n((p), (value), __ATOMIC_RELAXED)
#define weir__count(p, n)   ((void)__atomic_fetch_add((p), (n), __ATOMIC_RELAXED))

/* Writes before weir__publish are seen after weir__acquire. */
#define weir__acquire(p)        __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define weir__publish(p, value) __atomic_store_n((p), (value), __ATOMIC_RELEASE)

/* Words of a table. */
static inline uint64_t weir__load(const uint64_t *p)
{
    return weir__acquire(p);
}

static inline bool weir__swap(uint64_t *p, uint64_t expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* Both return the word as it was. */
static inline uint64_t weir__set_bits(uint64_t *p, uint64_t bits)
{
    return __atomic_fetch_or(p, bits, __ATOMIC_ACQ_REL);
}

static inline uint64_t weir__clear_bits(uint64_t *p, uint64_t bits)
{
    return __atomic_fetch_and(p, ~bits, __ATOMIC_ACQ_REL);
}

/* ThreadSanitizer would swap sixteen bytes under a lock of its own, which other processes do not
 * see; the instruction it does not see, so it is told what the swap orders. */
#if defined(__has_feature)
#define WEIR__HAS_FEATURE(x) __has_feature(x)
#else
#define WEIR__HAS_FEATURE(x) 0
#endif
#if defined(__x86_64__) && (defined(__SANITIZE_THREAD__) || WEIR__HAS_FEATURE(thread_sanitizer))
void weir__tsan_acquire(void *at) __asm__("__tsan_acquire");
void weir__tsan_release(void *at) __asm__("__tsan_release");

static inline bool weir__swap_u128(weir__u128 *p, weir__u128 expected, weir__u128 desired)
{
    uint64_t *halves = (uint64_t *)(void *)p, low = (uint64_t)expected,
             high = (uint64_t)(expected >> 64);
    bool done;

    weir__tsan_release(halves);
    weir__tsan_release(halves + 1);
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*p), "+a"(low), "+d"(high)
                     : "b"((uint64_t)desired), "c"((uint64_t)(desired >> 64))
                     : "memory");
    weir__tsan_acquire(halves);
    weir__tsan_acquire(halves + 1);
    return done;
}
#else
static inline bool weir__swap_u128(weir__u128 *p, weir__u128 expected, weir__u128 desired)
{
    return __sync_bool_compare_and_swap(p, expected, desired);
}
#endif

/* Sixteen bytes at once: no lock to die in.  Without this instruction tables would need another
 * design, so there is no fallback. */
static inline bool weir__swap_pair(uint64_t *p, const uint64_t expected[2],
                                   const uint64_t desired[2])
{
    weir__u128 e = (weir__u128)expected[1] << 64 | expected[0],
               d = (weir__u128)desired[1] << 64 | desired[0];

    return weir__swap_u128((weir__u128 *)(void *)p, e, d);
}

/* A pair that was whole at one moment, or close enough: the first word is read again, and a change
 * of the second alone leaves either combination a state that the key was in.  A grant is decided by
 * weir__swap_pair anyway. */
static inline void weir__load_pair(const uint64_t *p, uint64_t out[2])
{
    uint64_t first = weir__load(p);

    do {
        out[0] = first;
        out[1] = weir__load(p + 1);
        first = weir__load(p);
    } while (first != out[0]);
}

/* Words that others may be writing: read in order before whatever is read next, and written after
 * whatever was written before. */
static inline void weir__copy_words(void *to, const void *from, size_t bytes)
{
    uint64_t *t = to;
    const uint64_t *f = from, *end = f + bytes / sizeof(uint64_t);

    for (; end - f >= 4; t += 4, f += 4) { /* such words the compiler would copy one by one */
        weir__publish(&t[0], weir__acquire(&f[0]));
        weir__publish(&t[1], weir__acquire(&f[1]));
        weir__publish(&t[2], weir__acquire(&f[2]));
        weir__publish(&t[3], weir__acquire(&f[3]));
    }
    for (; f < end; t++, f++)
        weir__publish(t, weir__acquire(f));
}

/* Words that others may still be reading. */
static inline void weir__zero_words(void *to, size_t bytes)
{
    for (uint64_t *t = to, *end = t + bytes / sizeof(uint64_t); t < end; t++)
        weir__publish(t, (uint64_t)0);
}

#endif
