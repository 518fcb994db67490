/* layout.h -- an account: what one key has used, as a string in Redis.
 *
 * The module and the scripts read and write the same bytes, so both may work on the same keys.  An
 * account begins with the limit that it was written under, its head:
 *
 *     0  'W', then the version
 *     2  the algorithm, its place in algo.c's list; in the upper half the unit of the period:
 *        ns, us, ms, s
 *     3  count, period (0: by the calendar), which further members differ from their defaults, and
 *        those members; numbers of 1 to 10 bytes, 7 bits in each, the lowest first
 *        the state
 *
 * An ask under the same limit finds the same head, and compares it as bytes.  Under another limit
 * the head says what the old one was, so that what was used stays used.
 *
 * A time is 7 bytes of microseconds and 2 of nanoseconds (0 by Redis's clock), because Lua counts
 * exactly to 2^53 only.  The top bit of a meter's is meter.lua's mark.  The states, all numbers
 * little-endian:
 *
 *     gcra, token-bucket, leaky-bucket   time at; int64 owed, or (weir__account_is_split) int64
 *                                        whole microseconds and int64 parts
 *     fixed-window, calendar             time end; int64 used
 *     sliding-window                     time seen; int64 head; uint32 counts[]
 *     sliding-log                        time seen, newest; uint32 first, used; stamps, up to the
 *                                        last that was ever used
 *     smooth, warm-up                    the 16 bytes of the state (no script has them)
 */
#ifndef WEIR_CLUSTER_ACCOUNT_LAYOUT_H
#define WEIR_CLUSTER_ACCOUNT_LAYOUT_H

#include "algo/algo.h"

#define WEIR__ACCOUNT_MAGIC     'W'
#define WEIR__ACCOUNT_VERSION   1
#define WEIR__ACCOUNT_HEAD_MAX  128
#define WEIR__ACCOUNT_EXACT_MAX ((int64_t)1 << 52) /* what a script reckons with */

struct weir__account_head {
    unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX];
    size_t len;
    size_t most; /* bytes that an account with this head has at most; all but logs have as many */
};

/* The head of accounts under this plan. */
struct weir__account_head weir__account_head(const struct weir_plan *plan);

/* Reads a head.  Returns its length, or 0: this is no account. */
size_t weir__account_limit(struct weir_limit *out, const void *bytes, size_t len);

/* Parts of debt (algo.h) that a microsecond pays off: no more than there are numbers, and that is
 * more than any debt has. */
static inline int64_t weir__account_rate(const struct weir_plan *plan)
{
    uint64_t scale = plan->by_scale.by;

    return scale > INT64_MAX / 1000 ? INT64_MAX : (int64_t)scale * 1000;
}

/* A debt that is too large for one exact number in a script. */
bool weir__account_is_split(const struct weir_plan *plan);

/* The most bytes that a state under this plan can have in Redis. */
size_t weir__account_state_max(const struct weir_plan *plan);
/* Writes a state; returns its length. */
size_t weir__account_write(const struct weir_plan *plan, const void *state, unsigned char *out);
/* Reads a state into plan->state_size bytes.  False: it is none, and nothing is read. */
bool weir__account_read(const struct weir_plan *plan, void *state, const unsigned char *bytes,
                        size_t len);

/* Whether two accounts are the same but for meter.lua's mark; the first is under this head. */
bool weir__account_is_same(const struct weir_plan *plan, const struct weir__account_head *head,
                           const void *a, size_t a_len, const void *b, size_t b_len);

enum weir__account_found {
    WEIR__ACCOUNT_NEW,     /* there was none, or of another algorithm: the state is fresh */
    WEIR__ACCOUNT_SAME,    /* under the same limit */
    WEIR__ACCOUNT_MOVED,   /* under another: what was used is kept, as by weir_step_change */
    WEIR__ACCOUNT_FOREIGN, /* these bytes are something else */
};

/* Reads a whole account into a state of the plan. */
enum weir__account_found weir__account_open(const struct weir_plan *plan,
                                            const struct weir__account_head *head, void *state,
                                            const void *bytes, size_t len, weir_time now);

/* When the key may go.  A window that was emptied stays to its end: window.lua counts on in it, and
 * leaves the expiry as it is. */
weir_time weir__account_idle_at(const struct weir_plan *plan, const void *state);

/* Whether the state is all that a smaller count leaves of a window or log in which more was used,
 * and nothing was taken since.  Such an account stays as it is: callers with the larger count,
 * beside whom this one asks, would find units in it again and again. */
bool weir__account_was_cut(const struct weir_plan *plan, const void *state, const void *bytes,
                           size_t len);

#endif
