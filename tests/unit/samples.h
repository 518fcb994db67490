/* samples.h -- shared by the tests of controllers: a controller under test, and samples made by
 * hand. */
#ifndef WEIR_TESTS_UNIT_SAMPLES_H
#define WEIR_TESTS_UNIT_SAMPLES_H

#include "fixture.h"

#include "guard/controller.h"

#define MS WEIR_MILLISECOND

struct subject {
    struct weir__controller_plan plan;
    _Alignas(16) unsigned char state[WEIR__CONTROLLER_STATE];
    struct weir__recent recent;
    struct weir__histogram times; /* of the sample that is being made */
    weir_time now;
    int64_t limit;
};

static inline struct weir__controller_plan plan_of(const struct weir_adaptive_options *options,
                                                   int64_t permits)
{
    struct weir__controller_plan plan;
    struct weir_error error = { 0 };

    if (weir__controller_plan_make(&plan, options, permits, &error) != WEIR_OK)
        fail_msg("%s: %s", options->controller, error.text);
    return plan;
}

static inline struct subject subject_of(const struct weir_adaptive_options *options)
{
    struct subject s = { .plan = plan_of(options, 100000), .now = NOW };

    s.limit = s.plan.initial;
    return s;
}

static inline void add_times(struct subject *s, weir_time took, int64_t n)
{
    s->times.counts[weir__bin_of(took)] += (uint32_t)n;
}

/* Time goes on by the sample's span (0: a look); s->times holds its results. */
static inline int64_t feed(struct subject *s, struct weir__sample sample)
{
    sample.span = sample.span ? sample.span : s->plan.sample_span;
    s->now += sample.span;
    sample.now = s->now;
    sample.limit = s->limit;
    sample.times = &s->times;
    sample.recent = &s->recent;
    weir__recent_add(&s->recent, &s->times, s->plan.window, s->now);
    s->limit = weir__controller_step(&s->plan, s->state, &sample);
    memset(&s->times, 0, sizeof(s->times));
    return s->limit;
}

/* n calls that all took the same time. */
static inline int64_t feed_calls(struct subject *s, weir_time rtt, int64_t n, int64_t in_flight)
{
    add_times(s, rtt, n);
    return feed(
        s, (struct weir__sample){
               .succeeded = n, .entered = n, .mean = rtt, .min = rtt, .in_flight_max = in_flight });
}

static inline int64_t feed_lost(struct subject *s, int64_t dropped, int64_t timed_out,
                                int64_t in_flight)
{
    return feed(s, (struct weir__sample){ .dropped = dropped,
                                          .timed_out = timed_out,
                                          .entered = dropped + timed_out,
                                          .in_flight_max = in_flight });
}

#endif
