/* bbr.c -- as TCP BBR: as many as the backend finishes in the shortest time it needs.
 *
 *     limit = floor(most finished in a part * least mean time of a part * parts in a second)
 *
 * over the last 10 s in 100 parts, of which the one that is being filled does not count.  Times are
 * whole milliseconds, rounded up.
 *
 * As Kratos' limiter (go-kratos/aegis, ratelimit/bbr; Sentinel's is much the same), which asks it
 * only while the processor is hot and for a second after, and otherwise lets everybody in.
 *
 * Deviations: a guard has no such hot and cold (see system.h for that), so the limit is always in
 * force.  Then what is finished is what was let in, and nothing would ever find that there is more;
 * so while somebody is refused, one part in eight is let 1.25 times that (at least one more), as
 * TCP BBR probes; and 2.89 times while what is finished still grows by a quarter from part to part,
 * as it starts up.  Before anything is known: the initial limit.  A sample longer than a part
 * counts as so many equal ones.  Counts end at 65535 a part, times at 65 s. Known, and kept: work
 * of less than a millisecond counts as one, so it is let far too many of those; drops and time-outs
 * are not looked at; the shortest time is that of a part where nobody waited, so a queue is always
 * forgotten in 10 s.
 */
#include "guard/controller.h"

#include <stdio.h>
#include <string.h>

#include "guard/number.h"

#define PARTS      100
#define PART       (100 * WEIR_MILLISECOND)
#define PER_SECOND 10
#define CYCLE      8 /* parts, one of which probes */
#define PROBE      1.25
#define STARTUP    2.89 /* 2 / ln 2 */

struct part {
    uint16_t passed; /* at least 1 if there is any */
    uint16_t rtt_ms; /* 0: nothing ended in it */
};

struct state {
    int64_t number;                    /* of the part that is being filled, from 1; 0: fresh */
    double passed, rtt_sum, rtt_count; /* of it */
    int64_t grew; /* the last part that finished a quarter more than any before it */
    struct part parts[PARTS];
};

_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

static int64_t round_up(double n)
{
    int64_t whole = (int64_t)weir__least(n, 65535);
    return whole + (whole < 65535 && (double)whole < n);
}

static int64_t most_passed(const struct state *s)
{
    int64_t most = 0;
    for (int i = 0; i < PARTS; i++)
        most = weir__int_most(s->parts[i].passed, most);
    return most;
}

static int64_t least_rtt(const struct state *s)
{
    int64_t least = 0;
    for (int i = 0; i < PARTS; i++)
        if (s->parts[i].rtt_ms > 0 && (least == 0 || s->parts[i].rtt_ms < least))
            least = s->parts[i].rtt_ms;
    return least;
}

/* The part that was being filled is full, and `number` begins. */
static void turn(struct state *s, int64_t number)
{
    bool known = s->number > 0 && number > s->number && number - s->number < PARTS;
    int64_t most = most_passed(s), passed = (int64_t)weir__least(s->passed, 65535);
    struct part full = { .passed = (uint16_t)passed,
                         .rtt_ms =
                             s->rtt_count > 0 ? (uint16_t)round_up(s->rtt_sum / s->rtt_count) : 0 };

    if (!known)
        memset(s, 0, sizeof(*s));
    for (int64_t i = s->number + 1; known && i <= number; i++)
        s->parts[i % PARTS] = (struct part){ 0 };
    if (known)
        s->parts[s->number % PARTS] = full;
    if (known && passed * 4 >= most * 5 && passed > 0)
        s->grew = number;
    s->number = number;
    s->passed = s->rtt_sum = s->rtt_count = 0;
}

/* A sample that is longer than a part: as if each of the parts it covers had had its share. */
static void fill(struct state *s, const struct weir__sample *sample)
{
    int64_t number = sample->now > 0 ? (sample->now - 1) / PART + 1 : 1;
    int64_t parts = sample->span > PART ? sample->span / PART : 1;
    int64_t first = weir__int_most(number - weir__int_least(parts, PARTS) + 1, 1);
    int64_t rtt_ms = sample->mean > 0 ? (sample->mean - 1) / WEIR_MILLISECOND + 1 : 0;

    if (s->number > 0 && first < s->number && number >= s->number)
        first = s->number;
    for (int64_t i = number < s->number && s->number - number < PARTS ? s->number : first;
         i <= number || i == s->number; i++) {
        if (i != s->number)
            turn(s, i);
        s->passed += (double)sample->succeeded / (double)parts;
        s->rtt_sum += (double)rtt_ms * (double)sample->succeeded / (double)parts;
        s->rtt_count += (double)sample->succeeded / (double)parts;
        if (i >= number)
            break;
    }
}

static double gain(const struct state *s, const struct weir__sample *sample)
{
    if (sample->refused == 0)
        return 1;
    if (s->grew > 0 && s->number - s->grew < 3)
        return STARTUP;
    return s->number % CYCLE == 0 ? PROBE : 1;
}

static double step(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample)
{
    struct state *s = state;

    fill(s, sample);
    int64_t passed = most_passed(s), rtt = least_rtt(s), limit = passed * rtt * PER_SECOND / 1000;
    double factor = gain(s, sample);
    if (rtt == 0)
        return (double)plan->initial;
    if (factor > 1 && (double)limit * factor < (double)limit + 1)
        return (double)(limit + 1);
    return (double)limit * factor;
}

static void tell(const void *state, char *out, size_t size)
{
    const struct state *s = state;
    snprintf(out, size, "%lld/s, %lldms", (long long)(most_passed(s) * PER_SECOND),
             (long long)least_rtt(s));
}

const struct weir__controller weir__controller_bbr = {
    .name = "bbr",
    .summary = "as TCP BBR: the most that is finished times the shortest time it takes (Kratos)",
    .defaults = { .initial = 20, .min = 1, .max = 1000, .sample_span = PART, .sample_count = 1 },
    .step = step,
    .tell = tell,
};
