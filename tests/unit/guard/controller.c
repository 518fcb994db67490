/* controller.c -- the list of controllers, from options to a plan, and what a step does whatever
 * the controller. */
#include "unit/test.h"

#include "unit/samples.h"

TEST(test_L12_the_list)
{
    const char *const *names = weir_controllers();
    int n = 0;
    for (; names[n]; n++) {
        const struct weir__controller *row = weir__controller_find(names[n]);
        assert_non_null(row);
        assert_string_equal(row->name, names[n]);
        assert_int_equal(weir__controller_index(row), n);
        assert_string_equal(weir_controller_summary(names[n]), row->summary);
    }
    assert_int_equal(n, 5);
    assert_string_equal(names[0], WEIR_ADAPTIVE);
    assert_null(weir__controller_find("none"));
    assert_null(weir_controller_summary("none"));
    assert_int_equal(weir__controller_index(NULL), -1);
}

TEST(test_L12_no_controller_is_no_plan)
{
    struct weir__controller_plan plan = plan_of(&(struct weir_adaptive_options){ 0 }, 1024);

    assert_null(plan.row);
}

TEST(test_L12_defaults_are_as_published)
{
    static const struct {
        const char *name;
        int64_t initial, min, max;
        weir_time sample_span;
        int64_t samples;
    } rows[] = {
        { "aimd", 20, 20, 200, WEIR_SECOND, 10 },
        { "vegas", 20, 1, 1000, WEIR_SECOND, 10 },
        { "gradient2", 20, 20, 200, WEIR_SECOND, 10 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir__controller_plan plan =
            plan_of(&(struct weir_adaptive_options){ .controller = rows[i].name }, 16384);
        assert_fields(plan, (initial, rows[i].initial), (min, rows[i].min), (max, rows[i].max),
                      (sample_span, rows[i].sample_span), (sample_count, rows[i].samples));
    }
}

TEST(test_L12_a_window_is_looked_back_over_or_looked_at)
{
    struct weir__controller_plan plan;

    plan =
        plan_of(&(struct weir_adaptive_options){ .controller = "percentile", .target = S }, 1024);
    assert_fields(plan, (window, 10 * S), (sample_span, S), (percentile, 99));
    plan = plan_of(
        &(struct weir_adaptive_options){
            .controller = "percentile", .target = S, .window = 2 * S, .percentile = 90 },
        1024);
    assert_fields(plan, (window, 2 * S), (sample_span, S / 5), (percentile, 90));
    plan = plan_of(&(struct weir_adaptive_options){ .controller = "vegas", .window = 2 * S }, 1024);
    assert_fields(plan, (window, 10 * S), (sample_span, 2 * S));
}

/* What is not named gives way to what is, and to the permits that there are. */
TEST(test_L12_defaults_give_way)
{
    static const struct {
        struct weir_adaptive_options options;
        int64_t permits, initial, min, max;
    } rows[] = {
        { { .controller = "aimd", .initial = 10 }, 1024, 10, 10, 200 },
        { { .controller = "aimd", .initial = 300 }, 1024, 300, 20, 300 },
        { { .controller = "aimd", .min = 300 }, 1024, 300, 300, 300 },
        { { .controller = "aimd", .max = 10 }, 1024, 10, 10, 10 },
        { { .controller = "aimd", .min = 5, .max = 10 }, 1024, 10, 5, 10 },
        { { .controller = "aimd" }, 7, 7, 7, 7 },
        { { .controller = "vegas" }, 50, 20, 1, 50 },
        { { .controller = "vegas" }, 1, 1, 1, 1 },
        { { .controller = "percentile", .target = S, .rate = true }, 1, 20, 1, 1000000000 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir__controller_plan plan = plan_of(&rows[i].options, rows[i].permits);
        assert_fields(plan, (initial, rows[i].initial), (min, rows[i].min), (max, rows[i].max));
    }
}

TEST(test_L12_what_makes_no_sense_is_told)
{
    static const struct {
        struct weir_adaptive_options options;
        const char *text;
    } rows[] = {
        { { .controller = "vega" },
          "unknown controller 'vega'; there are weir, percentile, aimd, vegas and gradient2" },
        { { .controller = "" }, "unknown controller ''" },
        { { .controller = "vegas", .rate = true }, "vegas has no 'rate'; it is for percentile" },
        { { .controller = "vegas", .initial = -1 }, "initial must be from 1 to 1000000000" },
        { { .controller = "vegas", .min = -1 }, "min must be from 1 to 1000000000" },
        { { .controller = "vegas", .max = INT64_MIN }, "max must be from 1 to 1000000000" },
        { { .controller = "vegas", .max = 1025 },
          "max must be at most 1024, the permits that there are" },
        { { .controller = "vegas", .initial = 1025 },
          "initial must be from min to max: 1 to 1024" },
        { { .controller = "vegas", .min = 2, .max = 1 }, "min must be at most max: 1" },
        { { .controller = "vegas", .min = 2, .initial = 1 },
          "initial must be from min to max: 2 to 1000" },
        { { .controller = "vegas", .max = 2, .initial = 3 },
          "initial must be from min to max: 1 to 2" },
        { { .controller = "vegas", .window = -1 }, "window must be from 10ms to 1h" },
        { { .controller = "vegas", .window = INT64_MAX }, "window must be from 10ms to 1h" },
        { { .controller = "vegas", .target = -1 }, "target must be more than 0 and at most 1h" },
        { { .controller = "percentile" }, "percentile needs a target" },
        { { .controller = "percentile", .target = S, .percentile = 100 },
          "percentile must be from 1 to 99" },
        { { .controller = "percentile", .target = S, .percentile = -1 },
          "percentile must be from 1 to 99" },
        { { .controller = "percentile", .target = S, .rate = true, .max = 1000000001 },
          "max must be from 1 to 1000000000" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir__controller_plan plan, before;
        struct weir_error error = { 0 };
        memset(&plan, 0x5a, sizeof(plan));
        memcpy(&before, &plan, sizeof(plan));
        assert_int_equal(weir__controller_plan_make(&plan, &rows[i].options, 1024, &error),
                         WEIR_INVALID);
        if (strncmp(error.text, rows[i].text, strlen(rows[i].text)) != 0)
            fail_msg("'%s', not '%s'", error.text, rows[i].text);
        assert_memory_equal(&plan, &before, sizeof(plan));
        assert_int_equal(weir__controller_plan_make(&plan, &rows[i].options, 1024, NULL),
                         WEIR_INVALID);
    }
}

/* ---------------------------------------------------------------- the step ---- */

static double answer; /* of the row below */
static int steps;

static double scripted_step(const struct weir__controller_plan *plan, void *state,
                            const struct weir__sample *sample)
{
    steps++;
    ++*(int64_t *)state;
    return answer;
}

static const struct weir__controller scripted = { .name = "scripted", .step = scripted_step };
static const struct weir__controller_plan scripted_plan = {
    .row = &scripted, .initial = 50, .min = 5, .max = 100, .window = 10 * S, .sample_span = S
};

TEST(test_L12_limits_are_whole_and_within_bounds)
{
    static const struct {
        double answer;
        int64_t limit;
    } rows[] = {
        { 10, 10 },   { 10.999999, 10 }, { 4.9, 5 },     { 0, 5 },    { -1e300, 5 },
        { 100, 100 }, { 101, 100 },      { 1e300, 100 }, { -0.0, 5 }, { 99.99, 99 },
    };
    struct subject s = { .plan = scripted_plan, .now = NOW };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        answer = rows[i].answer;
        assert_int_equal(feed(&s, (struct weir__sample){ 0 }), rows[i].limit);
    }
}

TEST(test_L12_what_is_no_number_begins_anew)
{
    struct subject s = { .plan = scripted_plan, .now = NOW };
    int64_t count;

    answer = 7;
    feed(&s, (struct weir__sample){ 0 });
    feed(&s, (struct weir__sample){ 0 });
    memcpy(&count, s.state, sizeof(count));
    assert_int_equal(count, 2);
    for (int i = 0; i < 3; i++) {
        answer = i == 0 ? __builtin_nan("") : i == 1 ? __builtin_inf() : -__builtin_inf();
        steps = 0;
        assert_int_equal(feed(&s, (struct weir__sample){ 0 }), 50);
        assert_int_equal(steps, 2);
        memcpy(&count, s.state, sizeof(count));
        assert_int_equal(count, 1);
    }
}

/* Whatever byte is not as it was written: the next step is that of a fresh one. */
TEST(test_L12_a_torn_state_begins_anew)
{
    for (const char *const *name = weir_controllers(); *name; name++) {
        struct weir_adaptive_options options = { .controller = *name, .target = 100 * MS };
        struct subject fresh = subject_of(&options), used = subject_of(&options);
        for (int i = 0; i < 40; i++)
            feed_calls(&used, 20 * MS, 300, used.limit);
        struct subject grown = used;
        fresh.now = used.now;
        fresh.recent = used.recent;
        int64_t expected = feed_calls(&fresh, 20 * MS, 300, 50);
        for (size_t byte = 0; byte < WEIR__CONTROLLER_STATE; byte++) {
            used = grown;
            used.state[byte] ^= (unsigned char)(1 + byte % 255);
            assert_int_equal(feed_calls(&used, 20 * MS, 300, 50), expected);
            assert_memory_equal(used.state, fresh.state, sizeof(fresh.state));
        }
    }
}

TEST(test_L12_what_another_controller_left_is_no_state)
{
    struct subject vegas = subject_of(&(struct weir_adaptive_options){ .controller = "vegas" });
    struct subject gradient =
        subject_of(&(struct weir_adaptive_options){ .controller = "gradient2" });

    for (int i = 0; i < 20; i++)
        feed_calls(&vegas, 20 * MS, 10, vegas.limit);
    assert_true(vegas.limit > 100);
    memcpy(gradient.state, vegas.state, sizeof(gradient.state));
    assert_int_equal(feed_calls(&gradient, 20 * MS, 10, 20), 20);
}

/* Random samples, wild ones among them: always a limit within the bounds. */
TEST(test_L12_every_controller_stands_any_sample)
{
    static const int64_t odd[] = {
        0, 1, 2, 10, 1000, 1000000, INT32_MAX, (int64_t)1 << 53, 3600 * S
    };
    uint64_t seed = 11;

    for (const char *const *name = weir_controllers(); *name; name++) {
        struct subject s =
            subject_of(&(struct weir_adaptive_options){ .controller = *name, .target = 100 * MS });
        for (int i = 0; i < 3000; i++) {
            int64_t n[10];
            for (size_t k = 0; k < COUNT_OF(n); k++)
                n[k] = random64(&seed) % 4 == 0 ? odd[random64(&seed) % COUNT_OF(odd)]
                                                : (int64_t)(random64(&seed) % 100);
            s.times.counts[random64(&seed) % WEIR__BINS] = (uint32_t)n[0];
            s.now = random64(&seed) % 50 == 0 ? (weir_time)(random64(&seed) >> 3) : s.now;
            int64_t limit = feed(&s, (struct weir__sample){ .span = 1 + n[9] % (100 * S),
                                                            .succeeded = n[0],
                                                            .failed = n[1],
                                                            .timed_out = n[2] % 3,
                                                            .dropped = n[3] % 3,
                                                            .entered = n[4],
                                                            .refused = n[5],
                                                            .in_flight_max = n[6],
                                                            .in_flight = n[6],
                                                            .min = n[7] % (3600 * S),
                                                            .mean = n[0] ? n[7] : 0,
                                                            .area = (double)n[8] });
            assert_in_range(limit, s.plan.min, s.plan.max);
            char text[80] = "";
            weir__controller_tell(&s.plan, s.state, text, sizeof(text));
            assert_true(strlen(text) < 79);
        }
    }
}

TEST(test_L12_of_a_state_that_is_not_whole_nothing_is_told)
{
    struct subject s = subject_of(&(struct weir_adaptive_options){ .controller = "vegas" });
    char text[80] = "x";

    weir__controller_tell(&s.plan, s.state, text, sizeof(text));
    assert_string_equal(text, ""); /* fresh */
    feed(&s, (struct weir__sample){
                 .span = S, .succeeded = 10, .in_flight_max = 10, .mean = 123456789 });
    weir__controller_tell(&s.plan, s.state, text, sizeof(text));
    assert_string_equal(text, "base 123ms");
    s.state[0] ^= 1;
    weir__controller_tell(&s.plan, s.state, text, sizeof(text));
    assert_string_equal(text, "");
    s.state[0] ^= 1;
    weir__controller_forget(s.state);
    weir__controller_tell(&s.plan, s.state, text, sizeof(text));
    assert_string_equal(text, "");
}
