/* ask-ids.c -- answers remembered by the id of their ask: the same answer within the lifetime, and
 * the oldest goes when there are too many. */
#include "unit/test.h"

#include <pthread.h>

#include "unit/fixture.h"
#include "server/serve/decide/ask-ids.h"
#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/events/events.h"

OWNS(weir__ask_ids)
OWNS(weir__fair_use)
OWNS(weir__events)

static struct weir__ask_ids *ids_of(int64_t room, weir_time lifetime)
{
    struct weir__ask_ids *ids = weir__ask_ids_create(room, lifetime, NULL);

    assert_non_null(ids);
    return ids;
}

/* A new ask is answered with `remaining`; else what was answered then.  -1: a clash. */
static int64_t ask(struct weir__ask_ids *ids, const char *id, uint64_t fingerprint, weir_time now,
                   int64_t remaining)
{
    struct weir_ruling ruling = { .rule = "r" };
    size_t hold;

    switch (weir__ask_ids_begin(
        ids, &(struct weir__ask_id){ id, strlen(id), fingerprint, now, NULL }, &ruling, &hold)) {
    case WEIR__ASK_ID_NEW:
        ruling.decision.remaining = remaining;
        weir__ask_ids_end(ids, hold, &ruling);
        return remaining;
    case WEIR__ASK_ID_REPEATED:
        assert_string_equal(ruling.rule, "r");
        return ruling.decision.remaining;
    case WEIR__ASK_ID_CLASH:
    default:
        return -1;
    }
}

TEST(test_S1_a_retry_is_answered_the_same_within_its_lifetime)
{
    OWN(weir__ask_ids) *ids = ids_of(1000, 60 * S);
    assert_int_equal(ask(ids, "a", 1, NOW, 9), 9);
    assert_int_equal(ask(ids, "a", 1, NOW, 8), 9);
    assert_int_equal(ask(ids, "b", 1, NOW, 7), 7);
    assert_int_equal(ask(ids, "a", 2, NOW, 6), -1); /* the same id for another request */
    assert_int_equal(ask(ids, "a", 1, NOW + 60 * S - 1, 5), 9);
    assert_int_equal(ask(ids, "a", 2, NOW + 60 * S, 4), 4); /* its time is over */
    assert_int_equal(ask(ids, "a", 2, NOW + 61 * S, 3), 4);
    assert_int_equal(ask(ids, "", 1, NOW, 2), 2); /* any bytes are an id */
    assert_int_equal(ask(ids, "", 1, NOW, 1), 2);
    assert_int_equal(weir__ask_ids_replaced(ids), 0);
}

TEST(test_an_ask_that_is_decided_later_is_answered_so_from_then_on)
{
    OWN(weir__ask_ids) *ids = ids_of(1000, 60 * S);
    const struct weir_ruling late = { .rule = "r", .decision.remaining = 5 };
    const struct weir__ask_id a = { "a", 1, 1, NOW + S, NULL }, b = { "b", 1, 1, NOW + S, NULL },
                              other = { "a", 1, 2, NOW + S, NULL };

    assert_int_equal(ask(ids, "a", 1, NOW, 0), 0);
    assert_int_equal(ask(ids, "b", 1, NOW, 0), 0);
    weir__ask_ids_settle(ids, &a, &late);
    weir__ask_ids_settle(ids, &other, NULL); /* another request's: no effect */
    assert_int_equal(ask(ids, "a", 1, NOW + S, 9), 5);
    weir__ask_ids_settle(ids, &b, NULL);
    assert_int_equal(ask(ids, "b", 1, NOW + S, 9), 9);
    assert_int_equal(ask(ids, "b", 1, NOW + S, 8), 9);
}

TEST(test_the_whole_ruling_comes_back)
{
    OWN(weir__ask_ids) *ids = ids_of(10, S);
    struct weir_ruling given, got;
    size_t hold;
    memset(&given, 0x5a, sizeof(given));
    assert_int_equal(
        weir__ask_ids_begin(ids, &(struct weir__ask_id){ "x", 1, 7, NOW, NULL }, &got, &hold),
        WEIR__ASK_ID_NEW);
    weir__ask_ids_end(ids, hold, &given);
    assert_int_equal(
        weir__ask_ids_begin(ids, &(struct weir__ask_id){ "x", 1, 7, NOW, NULL }, &got, &hold),
        WEIR__ASK_ID_REPEATED);
    assert_memory_equal(&given, &got, sizeof(got));
}

TEST(test_when_full_the_oldest_goes_and_is_counted)
{
    enum { ROOM = 1600, MANY = 10 * ROOM };
    OWN(weir__ask_ids) *ids = ids_of(ROOM, 60 * S);
    char id[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof(id), "id %d", i);
        assert_int_equal(ask(ids, id, 1, NOW + i, i), i);
        assert_int_equal(ask(ids, id, 1, NOW + i, -5), i);
    }
    assert_int_equal(weir__ask_ids_replaced(ids), MANY - ROOM);
    for (int i = MANY - ROOM / 2; i < MANY;
         i++) { /* the younger half is there, whatever shards they fell into */
        snprintf(id, sizeof(id), "id %d", i);
        assert_int_equal(ask(ids, id, 1, NOW + MANY, -5), i);
    }
    assert_int_equal(ask(ids, "id 0", 2, NOW + MANY, 42),
                     42); /* the oldest is gone: its id may be used for another request */
}

TEST(test_those_whose_time_is_over_make_room_for_nothing)
{
    OWN(weir__ask_ids) *ids = ids_of(1, S); /* as few as there can be */
    char id[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof(id), "id %d", i);
        assert_int_equal(ask(ids, id, 1, NOW + i * S, i), i);
    }
    assert_int_equal(weir__ask_ids_replaced(ids), 0);
}

/* Whatever shards its old ids and its new one fall into. */
TEST(test_a_client_has_its_share_again_when_its_ids_are_over)
{
    OWN(weir__events) *events = weir__events_create();
    struct weir__conn conn = { .fair_user = { 1, 1 } };
    struct weir_ruling ruling = { .rule = "r" };
    for (int round = 0; round < 500; round++) {
        OWN(weir__fair_use) *fair_use = weir__fair_use_create(events);
        OWN(weir__ask_ids) *ids = weir__ask_ids_create(160, 60 * S, fair_use);
        enum weir__ask_id_state known = WEIR__ASK_ID_UNKEPT;
        for (int i = 0; i <= 200; i++) {
            struct weir__ask_id id = { &i, sizeof(i), 1, i < 200 ? NOW : NOW + 60 * S, &conn };
            size_t hold;
            known = weir__ask_ids_begin(ids, &id, &ruling, &hold);
            if (known == WEIR__ASK_ID_NEW)
                weir__ask_ids_end(ids, hold, &ruling);
            assert_true(i != 199 || known == WEIR__ASK_ID_UNKEPT);
        }
        assert_int_equal(known, WEIR__ASK_ID_NEW);
    }
}

TEST(test_odd_numbers_do_no_harm)
{
    struct weir__ask_ids *ids = ids_of(-5, WEIR_FOREVER);

    assert_int_equal(ask(ids, "a", 1, -7, 1), 1);
    assert_int_equal(ask(ids, "a", 1, INT64_MAX - 1, 2), 1);
    weir__ask_ids_destroy(ids);
    ids = ids_of(10, -1);
    assert_int_equal(ask(ids, "a", 1, NOW, 1), 1);
    assert_int_equal(ask(ids, "a", 1, NOW, 2), 2); /* no lifetime: nothing is remembered */
    weir__ask_ids_destroy(ids);
    weir__ask_ids_destroy(NULL);
}

/* ----------------------------------------------------------------------- threads ---- */

#define THREADS 4
#define IDS     500

static int64_t charged[IDS];
static struct weir__ask_ids *shared;

static void *ask_all(void *argument)
{
    for (int i = 0; i < 4 * IDS; i++) {
        struct weir_ruling ruling;
        size_t hold;
        int n = i * 7 % IDS;
        if (weir__ask_ids_begin(shared, &(struct weir__ask_id){ &n, sizeof(n), 1, NOW, NULL },
                                &ruling, &hold) == WEIR__ASK_ID_NEW) {
            __atomic_fetch_add(&charged[n], 1, __ATOMIC_RELAXED);
            weir__ask_ids_end(shared, hold, &ruling);
        }
    }
    return NULL;
}

RACE(test_S1_copies_of_one_ask_at_the_same_time_are_charged_once)
{
    pthread_t threads[THREADS];

    shared = ids_of(100 * IDS, S);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < IDS; i++)
        assert_int_equal(charged[i], 1);
    weir__ask_ids_destroy(shared);
}
