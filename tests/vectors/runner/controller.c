/* controller.c -- cases of .vec files that are about a controller of an adaptive limit
 * (docs: tests/vectors/README.md).
 *
 *     controller NAME [initial=N] [min=N] [max=N] [target=T] [percentile=N] [window=T] [rate]
 *     at TIME sample [rtt T [xN] ...] [in-flight N|limit] [dropped N] [timeouts N] [entered N]
 *     [refused N] [repeat N] [-> limit N]
 *
 * A sample lasts from the one before it to TIME; the first one as long as the controller looks at
 * least.  Each `rtt` is of one call that succeeded, or of N.  `in-flight limit`: as many as there
 * may be.  Entered are, if it is not said, all that ended.  `repeat`: N such samples, each as long
 * as the controller looks at least, the first of which ends at TIME; the limit is what comes after
 * the last.
 *
 * They are run on the bare step.
 */
#include "vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "guard/controller.h"

enum { RTTS_MAX = 8, REPEAT_MAX = 10000, CALLS_MAX = 100000000, NUMBER_MAX = 1000000000 };

struct line {
    struct {
        weir_time rtt;
        int64_t calls;
    } rtts[RTTS_MAX];
    int rtt_count;
    int64_t in_flight, dropped, timeouts, entered, refused, repeat;
    bool in_flight_is_limit, has_entered, has_limit;
    int64_t limit; /* expected */
};

static int read_number(struct weir__cursor *c, const char *what, int64_t least, int64_t most,
                       int64_t *out)
{
    weir__cursor_end(c);
    const char *start = c->at;
    int code = weir__cursor_count(c, what, least, out);

    if (code != WEIR_OK || *out <= most)
        return code;
    c->at = start;
    return weir__vector_fail(c, "%s must be at most %" PRId64, what, most);
}

/* ---------------------------------------------------------- the controller ---- */

static int read_percentile(struct weir__cursor *c, struct weir_adaptive_options *o)
{
    int64_t n = 0;
    int code = read_number(c, "percentile", 1, 99, &n);

    o->percentile = (int32_t)n;
    return code;
}

static int read_option(struct weir__cursor *c, struct weir_adaptive_options *o)
{
    const struct {
        const char *name;
        int64_t *number;
        weir_time *time;
    } rows[] = {
        { "initial", &o->initial, NULL }, { "min", &o->min, NULL },       { "max", &o->max, NULL },
        { "target", NULL, &o->target },   { "window", NULL, &o->window },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (weir__vector_accept_key(c, rows[i].name))
            return rows[i].time ? weir__vector_time(c, rows[i].name, rows[i].time)
                                : read_number(c, rows[i].name, 1, NUMBER_MAX, rows[i].number);
    }
    if (weir__vector_accept_key(c, "percentile"))
        return read_percentile(c, o);
    o->rate = weir__vector_accept(c, "rate");
    return o->rate ? WEIR_OK
                   : weir__vector_fail(c,
                                       "'%.20s' is nothing of a controller; it has initial=, min=, "
                                       "max=, target=, percentile=, window= and rate",
                                       c->at);
}

static int read_subject(struct weir__cursor *c, void *out)
{
    struct weir_adaptive_options o = { 0 };
    int code = WEIR_OK;
    char name[32];

    if (weir__cursor_end(c))
        return weir__vector_fail(c, "the name is missing: controller NAME");
    int column = weir__cursor_column(c), len = (int)strcspn(c->at, " \t");
    snprintf(name, sizeof(name), "%.*s", len, c->at);
    o.controller = name;
    c->at += len;
    while (code == WEIR_OK && !weir__cursor_end(c))
        code = read_option(c, &o);
    if (code != WEIR_OK)
        return code;
    code = weir__controller_plan_make(out, &o, NUMBER_MAX, c->error);
    if (code != WEIR_OK)
        c->error->column = column;
    return code;
}

/* --------------------------------------------------------------- the lines ---- */

static int read_rtt(struct weir__cursor *c, struct line *l)
{
    if (l->rtt_count == RTTS_MAX)
        return weir__vector_fail(c, "a sample has at most %d different rtts", RTTS_MAX);
    int i = l->rtt_count++, code = weir__vector_time(c, "rtt", &l->rtts[i].rtt);
    if (code == WEIR_OK && l->rtts[i].rtt < 1)
        return weir__vector_fail(c, "rtt must be longer than 0");
    l->rtts[i].calls = 1;
    if (code != WEIR_OK || weir__cursor_end(c) || *c->at != 'x')
        return code;
    c->at++;
    return read_number(c, "how many calls", 1, CALLS_MAX, &l->rtts[i].calls);
}

static int read_in_flight(struct weir__cursor *c, struct line *l)
{
    l->in_flight_is_limit = weir__vector_accept(c, "limit");
    return l->in_flight_is_limit ? WEIR_OK
                                 : read_number(c, "in-flight", 0, NUMBER_MAX, &l->in_flight);
}

static int read_field(struct weir__cursor *c, struct line *l)
{
    if (weir__vector_accept(c, "rtt"))
        return read_rtt(c, l);
    if (weir__vector_accept(c, "in-flight"))
        return read_in_flight(c, l);
    if (weir__vector_accept(c, "dropped"))
        return read_number(c, "dropped", 0, NUMBER_MAX, &l->dropped);
    if (weir__vector_accept(c, "timeouts"))
        return read_number(c, "timeouts", 0, NUMBER_MAX, &l->timeouts);
    if (weir__vector_accept(c, "refused"))
        return read_number(c, "refused", 0, NUMBER_MAX, &l->refused);
    if (weir__vector_accept(c, "repeat"))
        return read_number(c, "repeat", 1, REPEAT_MAX, &l->repeat);
    l->has_entered = weir__vector_accept(c, "entered");
    return l->has_entered
               ? read_number(c, "entered", 0, NUMBER_MAX, &l->entered)
               : weir__vector_fail(c,
                                   "'%.20s' is nothing of a sample; it has rtt, in-flight, "
                                   "dropped, timeouts, entered, refused and repeat",
                                   c->at);
}

static int read_line(struct weir__cursor *c, const void *subject, void *out)
{
    struct line *l = out;
    int code = WEIR_OK;

    (void)subject;
    if (!weir__vector_accept(c, "sample"))
        return weir__vector_fail(c, "expected sample");
    l->repeat = 1;
    while (code == WEIR_OK && !weir__cursor_end(c) && !l->has_limit) {
        l->has_limit = weir__vector_accept(c, "->");
        code = l->has_limit ? WEIR_OK : read_field(c, l);
    }
    if (code != WEIR_OK || !l->has_limit)
        return code;
    if (!weir__vector_accept(c, "limit"))
        return weir__vector_fail(c, "expected what the limit must be: -> limit N");
    code = read_number(c, "the limit", 0, NUMBER_MAX, &l->limit);
    return code == WEIR_OK ? weir__vector_end(c) : code;
}

/* ----------------------------------------------------------------- running ---- */

struct run {
    struct weir__controller_plan plan;
    _Alignas(16) unsigned char state[WEIR__CONTROLLER_STATE];
    struct weir__recent recent;
    struct weir__histogram times;
    int64_t limit;
    weir_time last; /* when the last sample ended */
    bool begun;
};

static void *open_run(const void *subject)
{
    struct run *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->plan = *(const struct weir__controller_plan *)subject;
    r->limit = r->plan.initial;
    return r;
}

/* What the calls were like, as a guard sums them up. */
static void sum_up(struct run *r, const struct line *l, struct weir__sample *s)
{
    weir__i128 sum = 0;

    memset(&r->times, 0, sizeof(r->times));
    for (int i = 0; i < l->rtt_count; i++) {
        s->succeeded += l->rtts[i].calls;
        s->min = i == 0 || l->rtts[i].rtt < s->min ? l->rtts[i].rtt : s->min;
        sum += (weir__i128)l->rtts[i].rtt * l->rtts[i].calls;
        r->times.counts[weir__bin_of(l->rtts[i].rtt)] += (uint32_t)l->rtts[i].calls;
    }
    s->mean = s->succeeded > 0 ? (weir_time)(sum / s->succeeded) : 0;
    s->timed_out = l->timeouts;
    s->dropped = l->dropped;
    s->refused = l->refused;
    s->entered = l->has_entered ? l->entered : s->succeeded + s->timed_out + s->dropped;
    s->in_flight = s->in_flight_max = l->in_flight_is_limit ? r->limit : l->in_flight;
    s->limit = r->limit;
    s->times = &r->times;
    s->recent = &r->recent;
}

static void feed(struct run *r, const struct line *l, weir_time at)
{
    weir_time begun = r->begun ? r->last : at - r->plan.sample_span;
    struct weir__sample s = { .now = at, .span = at > begun ? at - begun : 0 };

    sum_up(r, l, &s);
    s.area = (double)s.in_flight * (double)s.span;
    weir__recent_add(&r->recent, &r->times, r->plan.window, at);
    r->limit = weir__controller_step(&r->plan, r->state, &s);
    r->last = at;
    r->begun = true;
}

static bool run_line(void *run, weir_time at, const void *line, char *text, size_t size)
{
    struct run *r = run;
    const struct line *l = line;

    for (int64_t i = 0; i < l->repeat; i++) {
        feed(r, l, at);
        if (__builtin_add_overflow(at, r->plan.sample_span, &at))
            break;
    }
    if (!l->has_limit || l->limit == r->limit)
        return true;
    snprintf(text, size, "expected limit %" PRId64 " got limit %" PRId64, l->limit, r->limit);
    return false;
}

const struct weir__vector_kind weir__vector_controller = {
    .name = "controller",
    .subject_size = sizeof(struct weir__controller_plan),
    .line_size = sizeof(struct line),
    .read_subject = read_subject,
    .read_line = read_line,
    .open = open_run,
    .run = run_line,
    .close = free,
};
