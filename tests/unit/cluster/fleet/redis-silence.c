/* redis-silence.c -- when Redis is silent, and when it only was not asked. */
#include "unit/test.h"

#include "cluster/fleet/redis-silence.h"
#include "unit/fixture.h"

#define MS WEIR_MILLISECOND

/* Turns as they should be, from one moment to another.  The first at which it was alone; or 0. */
static weir_time turn_until(struct weir__hearing *h, weir_time from, weir_time to)
{
    for (weir_time at = from; at <= to; at += WEIR__HEARING_TURN)
        if (weir__hearing_turn(h, at))
            return at;
    return 0;
}

static struct weir__hearing heard(weir_time now)
{
    struct weir__hearing h;

    weir__hearing_begin(&h, false, now);
    weir__hearing_answer(&h, false, now);
    return h;
}

/* Purses are asked until a moment that is later than that at which the host finds out. */
TEST(test_a_silence_leaves_the_host_alone)
{
    struct weir__hearing h = heard(NOW);

    assert_int_equal(weir__hearing_span(&h, NOW), 700 * MS);
    assert_int_equal(turn_until(&h, NOW, NOW + 450 * MS), 0);
    assert_int_equal(weir__hearing_span(&h, NOW + 450 * MS), 250 * MS);
    assert_int_equal(turn_until(&h, NOW + 500 * MS, NOW + 500 * MS), NOW + 500 * MS);
    assert_int_equal(weir__hearing_span(&h, NOW + 500 * MS), 0);
    assert_int_equal(turn_until(&h, NOW + 550 * MS, NOW + 5 * S), 0); /* once */
    weir__hearing_answer(&h, true, NOW + 6 * S);
    assert_int_equal(weir__hearing_span(&h, NOW + 6 * S), 0); /* others are still missing */
    weir__hearing_answer(&h, false, NOW + 7 * S);
    assert_int_equal(weir__hearing_span(&h, NOW + 7 * S), 700 * MS);
}

TEST(test_purses_are_not_asked_before_the_first_answer)
{
    struct weir__hearing h;

    weir__hearing_begin(&h, false, NOW);
    assert_int_equal(weir__hearing_span(&h, NOW), 0);
    weir__hearing_answer(&h, true, NOW + MS); /* a new fleet: nobody was alone */
    assert_int_equal(weir__hearing_span(&h, NOW + MS), 700 * MS);
    weir__hearing_begin(&h, false, NOW);
    assert_int_equal(turn_until(&h, NOW, NOW + S), NOW + 500 * MS);
    weir__hearing_answer(&h, true, NOW + 2 * S);
    assert_int_equal(weir__hearing_span(&h, NOW + 2 * S), 0);
}

/* A process that has just started has asked nobody yet: that is no silence. */
TEST(test_D5_redis_is_taken_to_be_there_at_the_start)
{
    struct weir__hearing h;

    weir__hearing_begin(&h, true, NOW);
    assert_int_equal(weir__hearing_span(&h, NOW), 700 * MS);
    assert_int_equal(turn_until(&h, NOW, NOW + S), NOW + 500 * MS);
    assert_int_equal(weir__hearing_span(&h, NOW + 500 * MS), 0);
}

/* However long, and however long after the last answer: what was silence before stays so. */
TEST(test_D3_a_stopped_agent_does_not_take_redis_for_silent)
{
    static const weir_time stops[] = { 101 * MS, 450 * MS, 550 * MS, 5 * S, 3600 * S };

    for (size_t i = 0; i < COUNT_OF(stops); i++)
        for (weir_time before = 0; before <= 450 * MS; before += 50 * MS) {
            struct weir__hearing h = heard(NOW);
            assert_int_equal(turn_until(&h, NOW, NOW + before), 0);
            weir_time on = NOW + before + stops[i];
            assert_false(weir__hearing_turn(&h, on));
            assert_int_equal(weir__hearing_span(&h, on), 700 * MS - before);
            weir_time alone = turn_until(&h, on, on + S); /* Redis is silent now */
            assert_int_equal(alone - on, 500 * MS - before);
        }
}

/* A host that gets time now and then notices a silence all the same: one stall is forgotten, until
 * Redis answers again. */
TEST(test_a_starved_agent_notices_a_silence)
{
    struct weir__hearing h = heard(NOW);

    assert_false(weir__hearing_turn(&h, NOW + 300 * MS));
    assert_false(weir__hearing_turn(&h, NOW + 600 * MS));
    assert_true(weir__hearing_turn(&h, NOW + 900 * MS));
    h = heard(NOW);
    for (weir_time at = NOW; at < NOW + 10 * S; at += 300 * MS) {
        assert_false(weir__hearing_turn(&h, at));
        weir__hearing_answer(&h, false, at);
    }
}

/* It was stopped just after an answer came, before the turn: that stop counts from the answer. */
TEST(test_a_stop_after_an_answer)
{
    struct weir__hearing h = heard(NOW);

    assert_false(weir__hearing_turn(&h, NOW));
    weir__hearing_answer(&h, false, NOW + 40 * MS);
    assert_false(weir__hearing_turn(&h, NOW + S));
    assert_int_equal(weir__hearing_span(&h, NOW + S), 700 * MS);
}
