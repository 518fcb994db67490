/* events.c -- the ring: every event is one good JSON line within its bounds, numbers have no gaps,
 * and a late reader learns how much it missed. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <pthread.h>

#include "wire/json.h"
#include "server/serve/events/events.h"

#define DAY ((weir_time)1794744000 * WEIR_SECOND) /* 2026-11-15T12:00:00Z */

static struct weir__events *events;
static char text[WEIR__EVENT_MAX + 1]; /* of the event that was heard last */

static int make_events(void **state)
{
    events = weir__events_create();
    return events == NULL;
}

static int free_events(void **state)
{
    weir__events_destroy(events);
    return 0;
}

static bool pass(void *context, const struct weir__json_value *value)
{
    return true;
}

/* The event after *after as a text; fails unless there is one and it is JSON of one line. */
static const char *next(uint64_t *after, uint64_t *lost)
{
    struct weir__buffer json = { 0 };
    enum weir__event_kind kind;
    const char *what;

    assert_true(weir__events_next(events, after, &kind, &json, lost));
    assert_true(json.len <= WEIR__EVENT_MAX);
    assert_int_equal(weir__json_walk(json.bytes, json.len, NULL, pass, NULL, &what), -1);
    assert_null(memchr(json.bytes, '\n', json.len));
    memcpy(text, json.bytes, json.len);
    text[json.len] = '\0';
    weir__buffer_free(&json);
    assert_non_null(strstr(text, weir__event_name(kind)));
    return text;
}

static bool is_there_one(uint64_t after)
{
    FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
    enum weir__event_kind kind;
    uint64_t lost;
    bool is = weir__events_next(events, &after, &kind, &json, &lost);

    return is;
}

static void emit(const char *what)
{
    weir__events_emit(events, WEIR__EVENT_RELOAD, DAY, &(struct weir__event_facts){ .text = what });
}

TEST(test_S4_every_kind_has_a_name_of_its_own)
{
    for (int i = 0; i < WEIR__EVENT_KINDS; i++) {
        assert_true(strlen(weir__event_name((enum weir__event_kind)i)) > 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(weir__event_name((enum weir__event_kind)i),
                                    weir__event_name((enum weir__event_kind)k));
    }
}

TEST_WITH(test_S4_an_event_says_what_is_known_and_no_more, make_events, free_events)
{
    uint64_t after = 0, lost = 7;

    weir__events_emit(
        events, WEIR__EVENT_BAN, DAY + 123 * WEIR_MILLISECOND,
        &(struct weir__event_facts){ .rule = "login", .key = "192.0.2.7", .until = DAY + 60 * S });
    assert_string_equal(
        next(&after, &lost),
        "{\"id\":1,\"time\":\"2026-11-15T12:00:00.123Z\",\"event\":\"ban\",\"rule\":\"login\","
        "\"key\":\"192.0.2.7\",\"until\":\"2026-11-15T12:01:00.000Z\"}");
    assert_int_equal(after, 1);
    assert_int_equal(lost, 0);
    weir__events_emit(events, WEIR__EVENT_START, DAY, NULL);
    assert_string_equal(next(&after, &lost),
                        "{\"id\":2,\"time\":\"2026-11-15T12:00:00.000Z\",\"event\":\"start\"}");
    weir__events_emit(events, WEIR__EVENT_LIMITING_END, DAY,
                      &(struct weir__event_facts){ .rule = "a", .refused = 12, .count = 3 });
    assert_string_equal(next(&after, &lost),
                        "{\"id\":3,\"time\":\"2026-11-15T12:00:00.000Z\",\"event\":\"limiting-"
                        "end\",\"rule\":\"a\",\"refused\":12,\"count\":3}");
    assert_false(is_there_one(after));
    assert_int_equal(weir__events_latest(events), 3);
}

/* Whatever the texts are: what every byte of is escaped takes six times the room. */
TEST_WITH(test_an_event_keeps_within_its_bounds, make_events, free_events)
{
    static const char fills[] = { 'a', '"', '\\', '\x01', '\xff', '\x7f' };
    char fact[5000];
    uint64_t after = 0, lost;

    for (size_t i = 0; i < COUNT_OF(fills); i++) {
        for (size_t len = 0; len < sizeof(fact); len += len < 400 ? 7 : 997) {
            memset(fact, fills[i], sizeof(fact));
            fact[len] = '\0';
            struct weir__event_facts facts = { fact, fact,          fact,      fact,     fact,
                                               fact, fact,          fact,      fact,     fact,
                                               fact, INT64_MAX - 1, INT64_MIN, INT64_MIN };
            weir__events_emit(events, WEIR__EVENT_RELOAD_FAILED, DAY, &facts);
            next(&after, &lost);
        }
    }
}

TEST_WITH(test_rule_and_key_are_kept_whole, make_events, free_events)
{
    char rule[64], key[160], fact[2000], wanted[300];
    uint64_t after = 0, lost;

    memset(rule, 'r', 63);
    memset(key, 'k', 159);
    memset(fact, 't', 1999);
    rule[63] = key[159] = fact[1999] = '\0';
    weir__events_emit(
        events, WEIR__EVENT_BAN, DAY,
        &(struct weir__event_facts){ .rule = rule, .key = key, .source = fact, .text = fact });
    snprintf(wanted, sizeof(wanted), "\"rule\":\"%s\",\"key\":\"%s\"", rule, key);
    next(&after, &lost);
    assert_contains(text, wanted);
    assert_contains(text, "ttt...\"");
}

/* ------------------------------------------------------- those of clients ---- */

static void ban_keys(int n, weir_time now)
{
    while (n-- > 0)
        weir__events_emit_often(events, WEIR__EVENT_BAN, now,
                                &(struct weir__event_facts){ .rule = "login", .key = "made up" });
}

TEST_WITH(test_S4_a_flood_of_bans_leaves_other_events_in_the_ring, make_events, free_events)
{
    int64_t counts[WEIR__EVENT_KINDS];
    uint64_t after = 0, lost;

    emit("x");
    for (int s = 0; s < 600; s++) { /* ten minutes */
        ban_keys(1000, DAY + s * WEIR_SECOND);
        weir__events_tell_more(events, DAY + s * WEIR_SECOND);
    }
    assert_in_range(weir__events_latest(events), 150, 202);
    assert_contains(next(&after, &lost), "\"text\":\"x\"");
    assert_int_equal(lost, 0);
    weir__events_counts(events, counts);
    assert_int_equal(counts[WEIR__EVENT_BAN], 600000);
}

TEST_WITH(test_S4_bans_are_told_one_by_one_while_they_are_few, make_events, free_events)
{
    uint64_t after = 100, lost;

    ban_keys(100, DAY);
    assert_int_equal(weir__events_latest(events), 100);
    weir__events_tell_more(events, DAY);
    assert_int_equal(weir__events_latest(events), 100);
    ban_keys(23, DAY);
    weir__events_tell_more(events, DAY + 5 * WEIR_SECOND);
    assert_int_equal(weir__events_latest(events), 100);
    weir__events_emit_often(events, WEIR__EVENT_UNBAN, DAY, /* each kind by itself */
                            &(struct weir__event_facts){ .rule = "login", .key = "old" });
    assert_contains(next(&after, &lost), "\"unban\",\"rule\":\"login\",\"key\":\"old\"");
    weir__events_tell_more(events, DAY + 6 * WEIR_SECOND);
    assert_contains(next(&after, &lost), "\"event\":\"ban\",\"text\":\"more keys\",\"count\":23}");
    weir__events_tell_more(events, DAY + 60 * WEIR_SECOND);
    assert_false(is_there_one(after));
    ban_keys(1, DAY + 60 * WEIR_SECOND);
    assert_contains(next(&after, &lost), "\"key\":\"made up\"");
}

TEST_WITH(test_S4_who_is_late_is_told_how_much_it_missed, make_events, free_events)
{
    uint64_t after = 0, lost;
    char wanted[32];

    for (int i = 0; i < WEIR__EVENTS_KEPT; i++)
        emit("x");
    next(&after, &lost);
    assert_contains(text, "{\"id\":1,");
    assert_int_equal(lost, 0);
    for (int i = 0; i < 10; i++)
        emit("x");
    next(&after, &lost);
    assert_contains(text, "{\"id\":11,"); /* 2 to 10 are gone */
    assert_int_equal(lost, 9);
    for (uint64_t n = 12; n <= WEIR__EVENTS_KEPT + 10; n++) {
        snprintf(wanted, sizeof(wanted), "{\"id\":%d,", (int)n);
        next(&after, &lost);
        assert_contains(text, wanted);
        assert_int_equal(lost, 0);
    }
    assert_false(is_there_one(after));
}

TEST_WITH(test_a_number_of_an_earlier_run_begins_anew, make_events, free_events)
{
    uint64_t after = 5000, lost;

    assert_false(is_there_one(after));
    emit("x");
    next(&after, &lost);
    assert_contains(text, "{\"id\":1,");
    assert_int_equal(lost, 0);
    assert_int_equal(after, 1);
    after = UINT64_MAX;
    next(&after, &lost);
    assert_contains(text, "{\"id\":1,");
}

static void count_call(void *context)
{
    ++*(int *)context;
}

TEST_WITH(test_whoever_wants_is_woken, make_events, free_events)
{
    int calls = 0;
    int64_t counts[WEIR__EVENT_KINDS];

    weir__events_on_emit(events, count_call, &calls);
    emit("a");
    emit("b");
    assert_int_equal(calls, 2);
    weir__events_counts(events, counts);
    assert_int_equal(counts[WEIR__EVENT_RELOAD], 2);
    assert_int_equal(counts[WEIR__EVENT_BAN], 0);
}

enum { THREADS = 4, EACH = 2000 };

static void *emit_many(void *context)
{
    for (int i = 0; i < EACH; i++)
        emit("y");
    return NULL;
}

/* What is heard and what is lost is all that was told, and in order. */
RACE_WITH(test_threads_emit_and_nothing_is_unaccounted_for, make_events, free_events)
{
    pthread_t threads[THREADS];
    uint64_t after = 0, lost, heard = 0, all_lost = 0;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, emit_many, NULL), 0);
    while (after < THREADS * EACH) {
        if (!is_there_one(after))
            continue;
        uint64_t before = after;
        next(&after, &lost);
        assert_int_equal(after, before + lost + 1);
        heard++;
        all_lost += lost;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(heard + all_lost, THREADS * EACH);
}
