/* layout.c -- reads and writes accounts. */
#include "cluster/account/layout.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "algo/window.h"
#include "algo/debt.h"

#define TIME_SIZE 9
#define WORD_SIZE 8

/* ------------------------------------------------------------- numbers ---- */

static unsigned char *put_bytes(unsigned char *to, uint64_t n, int size)
{
    for (int i = 0; i < size; i++)
        *to++ = (unsigned char)(n >> (8 * i));
    return to;
}

static uint64_t get_bytes(const unsigned char **from, int size)
{
    uint64_t n = 0;

    for (int i = 0; i < size; i++)
        n |= (uint64_t) * (*from)++ << (8 * i);
    return n;
}

/* Eight bytes at once: an account is read and written with every decision. */
static unsigned char *put_word(unsigned char *to, uint64_t n)
{
    n = htole64(n);
    memcpy(to, &n, sizeof(n));
    return to + sizeof(n);
}

static uint64_t get_word(const unsigned char **from)
{
    uint64_t n;

    memcpy(&n, *from, sizeof(n));
    *from += sizeof(n);
    return le64toh(n);
}

static unsigned char *put_time(unsigned char *to, weir_time t)
{
    uint64_t time = (uint64_t)t & INT64_MAX, ns = time % 1000;

    to = put_word(to, time / 1000 | ns << 56);
    *to++ = (unsigned char)(ns >> 8);
    return to;
}

static weir_time get_time(const unsigned char **from)
{
    uint64_t word = get_word(from), us = word & (((uint64_t)1 << 56) - 1),
             ns = word >> 56 | (uint64_t)(*(*from)++ & 0x7f) << 8;

    return us > INT64_MAX / 1000 - 1 ? INT64_MAX : (weir_time)(us * 1000 + ns % 1000);
}

static unsigned char *put_number(unsigned char *to, uint64_t n)
{
    for (; n > 127; n >>= 7)
        *to++ = (unsigned char)(n | 128);
    *to++ = (unsigned char)n;
    return to;
}

struct reader {
    const unsigned char *at, *end;
    bool wrong;
};

static int64_t get_number(struct reader *r)
{
    uint64_t n = 0;

    for (int shift = 0; shift < 63 && r->at < r->end; shift += 7) {
        n |= (uint64_t)(*r->at & 127) << shift;
        if (*r->at++ < 128)
            return (int64_t)(n & INT64_MAX);
    }
    r->wrong = true;
    return 0;
}

/* ---------------------------------------------------------------- head ---- */

static const weir_time units[] = { 1, WEIR_MICROSECOND, WEIR_MILLISECOND, WEIR_SECOND };

enum {
    BURST = 1 << 0,
    QUEUE = 1 << 1,
    BUCKETS = 1 << 2,
    ALIGN_FIRST = 1 << 3,
    LOOSE = 1 << 4,
    WARMUP = 1 << 5,
    COLD = 1 << 6,
    CALENDAR = 1 << 7, /* and its zone */
};

static unsigned members_of(const struct weir_limit *l)
{
    return (l->burst ? BURST : 0u) | (l->queue ? QUEUE : 0u) | (l->buckets ? BUCKETS : 0u) |
           (l->align_first ? ALIGN_FIRST : 0u) | (l->loose ? LOOSE : 0u) |
           (l->warmup ? WARMUP : 0u) | (l->cold ? COLD : 0u) | (l->calendar ? CALENDAR : 0u);
}

static unsigned char *put_members(unsigned char *to, const struct weir_limit *l)
{
    unsigned members = members_of(l);

    to = put_number(to, members);
    if (members & BURST)
        to = put_number(to, (uint64_t)l->burst);
    if (members & QUEUE) /* WEIR_NO_QUEUE is -1 */
        to = put_number(to, (uint64_t)(l->queue + 1));
    if (members & BUCKETS)
        to = put_number(to, (uint64_t)l->buckets);
    if (members & WARMUP)
        to = put_number(to, (uint64_t)l->warmup);
    if (members & COLD)
        to = put_number(to, (uint64_t)l->cold);
    if (members & CALENDAR) {
        size_t len = strlen(l->zone);
        to = put_number(put_number(to, (uint64_t)l->calendar), len);
        memcpy(to, l->zone, len);
        to += len;
    }
    return to;
}

struct weir__account_head weir__account_head(const struct weir_plan *plan)
{
    struct weir_limit l = weir__plan_limit_named(plan);
    struct weir__account_head head = { .bytes = { WEIR__ACCOUNT_MAGIC, WEIR__ACCOUNT_VERSION } };
    int unit = 3;

    while (l.period % units[unit] != 0)
        unit--;
    head.bytes[2] = (unsigned char)(weir__algo_index(plan->algo->name) | unit << 4);
    unsigned char *to = put_number(head.bytes + 3, (uint64_t)l.count);
    to = put_members(put_number(to, (uint64_t)(l.period / units[unit])), &l);
    head.len = (size_t)(to - head.bytes);
    head.most = head.len + weir__account_state_max(plan);
    return head;
}

static void get_zone(struct reader *r, char zone[static 40])
{
    int64_t len = get_number(r);

    if (len > 39 || len > r->end - r->at) {
        r->wrong = true;
        return;
    }
    memcpy(zone, r->at, (size_t)len);
    r->at += len;
}

static int32_t get_small(struct reader *r)
{
    int64_t n = get_number(r);

    r->wrong = r->wrong || n > INT32_MAX;
    return (int32_t)n;
}

static void get_members(struct reader *r, struct weir_limit *l)
{
    int64_t members = get_number(r);

    l->burst = members & BURST ? get_number(r) : 0;
    l->queue = members & QUEUE ? get_number(r) - 1 : 0;
    l->buckets = members & BUCKETS ? get_small(r) : 0;
    l->align_first = members & ALIGN_FIRST;
    l->loose = members & LOOSE;
    l->warmup = members & WARMUP ? get_number(r) : 0;
    l->cold = members & COLD ? get_small(r) : 0;
    l->calendar = members & CALENDAR ? get_small(r) : 0;
    if (members & CALENDAR)
        get_zone(r, l->zone);
}

size_t weir__account_limit(struct weir_limit *out, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    struct reader r = { b + 3, b + len, false };
    struct weir_limit l = { 0 };
    const struct weir__algo *algo = len > 2 ? weir__algo_at(b[2] & 15) : NULL;

    if (len < 6 || b[0] != WEIR__ACCOUNT_MAGIC || b[1] != WEIR__ACCOUNT_VERSION || algo == NULL ||
        algo == &weir__purse || b[2] >> 4 > 3)
        return 0;
    l.algorithm = algo->name;
    l.count = get_number(&r);
    r.wrong = __builtin_mul_overflow(get_number(&r), units[b[2] >> 4], &l.period) || r.wrong;
    get_members(&r, &l);
    if (r.wrong)
        return 0;
    *out = l;
    return (size_t)(r.at - b);
}

/* --------------------------------------------------------------- state ---- */

enum kind { METER, WINDOW, RING, LOG, PLAIN };

static enum kind kind_of(const struct weir_plan *plan)
{
    const struct weir__algo *a = plan->algo;

    return a == &weir__gcra || a == &weir__token_bucket || a == &weir__leaky_bucket ? METER
           : a == &weir__fixed_window || a == &weir__calendar                       ? WINDOW
           : a == &weir__sliding_window                                             ? RING
           : a == &weir__sliding_log                                                ? LOG
                                                                                    : PLAIN;
}

bool weir__account_is_split(const struct weir_plan *plan)
{
    return kind_of(plan) == METER && plan->capacity > WEIR__ACCOUNT_EXACT_MAX;
}

/* How algorithms keep their states: each begins with one time or two words, and an array may
 * follow. */
struct words {
    int64_t first, second;
};

struct log_words {
    int64_t seen, newest;
    uint32_t first, used;
};

static size_t fixed_size(const struct weir_plan *plan)
{
    switch (kind_of(plan)) {
    case METER:
        return TIME_SIZE + (weir__account_is_split(plan) ? 2 * WORD_SIZE : WORD_SIZE);
    case LOG:
        return 2 * TIME_SIZE + WORD_SIZE;
    case PLAIN:
        return 2 * WORD_SIZE;
    default:
        return TIME_SIZE + WORD_SIZE;
    }
}

static size_t array_max(const struct weir_plan *plan)
{
    switch (kind_of(plan)) {
    case RING:
        return (size_t)plan->ring * sizeof(uint32_t);
    case LOG:
        return (size_t)plan->limit.count * (size_t)plan->stamp_size;
    default:
        return 0;
    }
}

size_t weir__account_state_max(const struct weir_plan *plan)
{
    return fixed_size(plan) + array_max(plan);
}

static unsigned char *put_owed(const struct weir_plan *plan, unsigned char *to, int64_t owed)
{
    int64_t rate = weir__account_rate(plan);

    if (!weir__account_is_split(plan))
        return put_word(to, (uint64_t)owed);
    return put_word(put_word(to, (uint64_t)(owed / rate)), (uint64_t)(owed % rate));
}

static int64_t get_owed(const struct weir_plan *plan, const unsigned char **from)
{
    int64_t owed = (int64_t)get_word(from), parts;

    if (!weir__account_is_split(plan))
        return owed;
    parts = (int64_t)get_word(from);
    return __builtin_mul_overflow(owed, weir__account_rate(plan), &owed) ||
                   __builtin_add_overflow(owed, parts, &owed)
               ? WEIR__OWED_MAX
               : owed;
}

/* Bytes of stamps that are used, and those before them. */
static size_t stamps_size(const struct weir_plan *plan, const struct log_words *l)
{
    int64_t end = (int64_t)l->first + l->used, count = plan->limit.count;

    return (size_t)((end > count ? count : end) * plan->stamp_size);
}

static size_t write_log(const struct weir_plan *plan, const void *state, unsigned char *out)
{
    struct log_words l;
    const unsigned char *stamps = (const unsigned char *)state + sizeof(l);

    memcpy(&l, state, sizeof(l));
    unsigned char *to = put_time(put_time(out, l.seen), l.newest);
    to = put_bytes(put_bytes(to, l.first, 4), l.used, 4);
    size_t size = stamps_size(plan, &l);
    memcpy(to, stamps, size);
    return (size_t)(to - out) + size;
}

size_t weir__account_write(const struct weir_plan *plan, const void *state, unsigned char *out)
{
    struct words w;
    enum kind kind = kind_of(plan);

    if (kind == LOG)
        return write_log(plan, state, out);
    memcpy(&w, state, sizeof(w));
    if (kind == PLAIN) {
        put_word(put_word(out, (uint64_t)w.first), (uint64_t)w.second);
        return 2 * WORD_SIZE;
    }
    unsigned char *to = put_time(out, w.first);
    to = kind == METER ? put_owed(plan, to, w.second) : put_word(to, (uint64_t)w.second);
    if (kind == RING)
        for (int64_t i = 0; i < plan->ring; i++) {
            uint32_t count;
            memcpy(&count, (const char *)state + sizeof(w) + (size_t)i * sizeof(count),
                   sizeof(count));
            count = htole32(count);
            memcpy(to, &count, sizeof(count));
            to += sizeof(count);
        }
    return (size_t)(to - out);
}

static struct log_words get_log(const unsigned char **from)
{
    struct log_words l;

    l.seen = get_time(from);
    l.newest = get_time(from);
    l.first = (uint32_t)get_bytes(from, 4);
    l.used = (uint32_t)get_bytes(from, 4);
    return l;
}

/* A log has the stamps that it speaks of. */
static bool is_log(const struct weir_plan *plan, const unsigned char *bytes, size_t len)
{
    if (len < fixed_size(plan))
        return false;
    struct log_words l = get_log(&bytes);
    return l.first < plan->limit.count && l.used <= plan->limit.count &&
           len - fixed_size(plan) >= stamps_size(plan, &l);
}

static bool is_state(const struct weir_plan *plan, const unsigned char *bytes, size_t len)
{
    return kind_of(plan) == LOG ? is_log(plan, bytes, len) : len == weir__account_state_max(plan);
}

static size_t stamps_in(const struct weir_plan *plan, size_t len)
{
    size_t stamps = len - fixed_size(plan);

    return stamps < array_max(plan) ? stamps : array_max(plan);
}

/* The size of a state to be read from `len` bytes that are one.  A log's limit may be large and its
 * stamps few: what nobody wrote takes no memory. */
static size_t room_for(const struct weir_plan *plan, size_t len)
{
    return kind_of(plan) == LOG ? sizeof(struct log_words) + stamps_in(plan, len) + WORD_SIZE
                                : plan->state_size;
}

static void read_log(const struct weir_plan *plan, void *state, const unsigned char *from,
                     size_t len)
{
    struct log_words l = get_log(&from);

    memcpy(state, &l, sizeof(l));
    memcpy((char *)state + sizeof(l), from, stamps_in(plan, len));
}

static void read_state(const struct weir_plan *plan, void *state, const unsigned char *from,
                       size_t len)
{
    struct words w;
    enum kind kind = kind_of(plan);

    if (kind == LOG) {
        read_log(plan, state, from, len);
        return;
    }
    w.first = kind == PLAIN ? (int64_t)get_word(&from) : get_time(&from);
    w.second = kind == METER ? get_owed(plan, &from) : (int64_t)get_word(&from);
    memcpy(state, &w, sizeof(w));
    if (kind == RING)
        for (int64_t i = 0; i < plan->ring; i++) {
            uint32_t count;
            memcpy(&count, from + (size_t)i * sizeof(count), sizeof(count));
            count = le32toh(count);
            memcpy((char *)state + sizeof(w) + (size_t)i * sizeof(count), &count, sizeof(count));
        }
}

bool weir__account_read(const struct weir_plan *plan, void *state, const unsigned char *bytes,
                        size_t len)
{
    if (!is_state(plan, bytes, len))
        return false;
    memset(state, 0, plan->state_size);
    read_state(plan, state, bytes, len);
    return true;
}

bool weir__account_is_same(const struct weir_plan *plan, const struct weir__account_head *head,
                           const void *a, size_t a_len, const void *b, size_t b_len)
{
    const unsigned char *x = a, *y = b;
    size_t mark = head->len + TIME_SIZE - 1;

    if (a_len != b_len)
        return false;
    if (kind_of(plan) != METER)
        return memcmp(x, y, a_len) == 0;
    return memcmp(x, y, mark) == 0 && (x[mark] & 127) == (y[mark] & 127) &&
           memcmp(x + mark + 1, y + mark + 1, a_len - mark - 1) == 0;
}

/* ---------------------------------------------------------------- open ---- */

static enum weir__account_found bring_over(const struct weir_plan *plan, void *state,
                                           const unsigned char *bytes, size_t len, weir_time now)
{
    struct weir_limit limit;
    struct weir_plan old;
    size_t head = weir__account_limit(&limit, bytes, len);

    if (head == 0 || weir__plan_make(&old, &limit, NULL) != WEIR_OK)
        return WEIR__ACCOUNT_FOREIGN;
    if (old.algo != plan->algo)
        return WEIR__ACCOUNT_NEW;
    if (!is_state(&old, bytes + head, len - head))
        return WEIR__ACCOUNT_FOREIGN;
    void *from = calloc(1, room_for(&old, len - head));
    if (from == NULL)
        return WEIR__ACCOUNT_FOREIGN;
    read_state(&old, from, bytes + head, len - head);
    weir_step_change(&old, plan, from, state, now);
    free(from);
    return WEIR__ACCOUNT_MOVED;
}

static bool window_was_cut(const struct weir_plan *plan, const struct weir__window_state *s,
                           const struct weir_plan *old, const unsigned char *bytes)
{
    struct weir__window_state before;

    read_state(old, &before, bytes, fixed_size(old));
    return s->end == before.end && s->used == plan->limit.count && s->used < before.used;
}

static bool log_was_cut(const struct weir_plan *plan, const struct log_words *s,
                        const unsigned char *bytes)
{
    struct log_words before = get_log(&bytes);

    return s->newest == before.newest && s->used == plan->limit.count && s->used < before.used;
}

bool weir__account_was_cut(const struct weir_plan *plan, const void *state, const void *bytes,
                           size_t len)
{
    const unsigned char *b = bytes;
    enum kind kind = kind_of(plan);
    struct weir_limit limit;
    struct weir_plan old;
    size_t head = weir__account_limit(&limit, bytes, len);

    if ((kind != WINDOW && kind != LOG) || head == 0 ||
        weir__plan_make(&old, &limit, NULL) != WEIR_OK || old.algo != plan->algo ||
        !is_state(&old, b + head, len - head))
        return false;
    return kind == LOG ? log_was_cut(plan, state, b + head)
                       : window_was_cut(plan, state, &old, b + head);
}

weir_time weir__account_idle_at(const struct weir_plan *plan, const void *state)
{
    struct weir__window_state emptied;

    if (kind_of(plan) != WINDOW)
        return weir_step_idle_at(plan, state);
    emptied = *(const struct weir__window_state *)state;
    emptied.used = emptied.used > 0 ? emptied.used : 1;
    return weir_step_idle_at(plan, &emptied);
}

enum weir__account_found weir__account_open(const struct weir_plan *plan,
                                            const struct weir__account_head *head, void *state,
                                            const void *bytes, size_t len, weir_time now)
{
    const unsigned char *b = bytes;

    bool same =
        len > head->len && memcmp(b, head->bytes, head->len) == 0 &&
        (kind_of(plan) == LOG ? is_log(plan, b + head->len, len - head->len) : len == head->most);

    if (!same || plan->state_size > sizeof(struct words)) /* else all of it is read */
        memset(state, 0, plan->state_size);
    if (same) {
        read_state(plan, state, b + head->len, len - head->len);
        return WEIR__ACCOUNT_SAME;
    }
    if (len == 0)
        return WEIR__ACCOUNT_NEW;
    return bring_over(plan, state, b, len, now);
}
