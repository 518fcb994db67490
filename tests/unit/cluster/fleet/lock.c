/* lock.c -- the step of a lock: what it sends, and when it relies on what. */
#include "unit/test.h"

#include "cluster/fleet/lock.h"

#define MS WEIR_MILLISECOND

static struct weir__lock lock;

static struct weir__lock_send begin(weir_time life, weir_time wait, weir_time now)
{
    lock = (struct weir__lock){ .life = life };
    return weir__lock_step(
        &lock, &(struct weir__lock_event){ .kind = WEIR__LOCK_BEGIN, .span = wait }, now);
}

static struct weir__lock_send event(int kind, weir_time now)
{
    struct weir__lock_event e = { .span = WEIR_SECOND };

    e.kind = kind;
    return weir__lock_step(&lock, &e, now);
}

static struct weir__lock_send answer(bool held, int64_t token, int64_t place, weir_time now)
{
    struct weir__lock_event e = {
        .kind = WEIR__LOCK_ANSWER,
        .reply = { .held = held, .token = token, .place = place, .left = WEIR_SECOND }
    };

    return weir__lock_step(&lock, &e, now);
}

TEST(test_D7_taken_kept_and_released)
{
    assert_int_equal(begin(640 * MS, 0, 1000 * MS).verb, WEIR__LOCK_TAKE);
    assert_int_equal(answer(true, 7, 0, 1010 * MS).verb, WEIR__LOCK_NOTHING);
    assert_fields(lock, (phase, WEIR__LOCK_HELD), (token, 7), (until, (1000 + 630) * MS));
    assert_int_equal(event(WEIR__LOCK_TIME, lock.due - 1).verb, WEIR__LOCK_NOTHING);
    assert_int_equal(event(WEIR__LOCK_TIME, lock.due).verb, WEIR__LOCK_KEEP);
    weir_time sent = lock.sent;
    answer(true, 7, 0, sent + 5 * MS);
    assert_fields(lock, (phase, WEIR__LOCK_HELD), (until, sent + 630 * MS));
    assert_int_equal(event(WEIR__LOCK_END, sent + 9 * MS).verb, WEIR__LOCK_FREE);
    assert_int_equal(lock.phase, WEIR__LOCK_RELEASED);
    assert_false(weir__lock_is_over(&lock));
    answer(false, 7, 0, sent + 10 * MS);
    assert_true(weir__lock_is_over(&lock));
}

TEST(test_D7_refused_at_once)
{
    begin(WEIR_SECOND, 0, 0);
    assert_int_equal(answer(false, 7, 0, MS).verb, WEIR__LOCK_NOTHING);
    assert_int_equal(lock.phase, WEIR__LOCK_REFUSED);
    assert_true(weir__lock_is_over(&lock));
}

TEST(test_D7_no_answer_may_be_a_grant)
{
    begin(WEIR_SECOND, 0, 0);
    assert_int_equal(event(WEIR__LOCK_FAILED, WEIR_SECOND).verb, WEIR__LOCK_FREE);
    assert_int_equal(event(WEIR__LOCK_FAILED, 2 * WEIR_SECOND).verb, WEIR__LOCK_NOTHING);
    assert_true(weir__lock_is_over(&lock));
}

/* A slow host must not make an error of it. */
TEST(test_D7_a_short_wait_is_for_the_line_and_not_for_redis)
{
    struct weir__lock_send send = begin(WEIR_SECOND, 5 * MS, 0);

    assert_fields(send, (verb, WEIR__LOCK_WAIT), (timeout, WEIR_SECOND));
    assert_int_equal(event(WEIR__LOCK_TIME, 6 * MS).verb, WEIR__LOCK_NOTHING);
    answer(true, 7, 0, 200 * MS);
    assert_fields(lock, (phase, WEIR__LOCK_HELD), (token, 7));
    begin(WEIR_SECOND, 5 * MS, 0);
    assert_int_equal(answer(false, 7, 1, 200 * MS).verb, WEIR__LOCK_FREE);
    assert_int_equal(lock.phase, WEIR__LOCK_REFUSED);
    begin(WEIR_SECOND, 5 * MS, 0);
    answer(false, 7, 1, MS);
    assert_fields(lock, (phase, WEIR__LOCK_WAITING), (due, 5 * MS));
    begin(WEIR_SECOND, 5 * MS, 0);
    assert_int_equal(event(WEIR__LOCK_FAILED, WEIR_SECOND).verb, WEIR__LOCK_FREE);
    assert_int_equal(lock.phase, WEIR__LOCK_REFUSED);
}

TEST(test_D7_waits_and_gives_up)
{
    assert_int_equal(begin(WEIR_SECOND, 300 * MS, 0).verb, WEIR__LOCK_WAIT);
    answer(false, 7, 4, 10 * MS);
    assert_fields(lock, (phase, WEIR__LOCK_WAITING), (due, 210 * MS));
    assert_int_equal(event(WEIR__LOCK_TIME, 210 * MS).verb, WEIR__LOCK_WAIT);
    answer(false, 7, 1, 220 * MS);
    assert_int_equal(lock.due, 270 * MS);
    struct weir__lock_send send = event(WEIR__LOCK_TIME, 270 * MS);
    assert_fields(send, (verb, WEIR__LOCK_WAIT), (timeout, 30 * MS));
    assert_int_equal(event(WEIR__LOCK_FAILED, 300 * MS).verb, WEIR__LOCK_FREE);
    assert_int_equal(lock.phase, WEIR__LOCK_REFUSED);
}

TEST(test_D7_lost_by_answer_by_time_and_by_another_token)
{
    begin(WEIR_SECOND, 0, 0);
    answer(true, 7, 0, MS);
    event(WEIR__LOCK_TIME, lock.due);
    answer(false, 8, 0, lock.sent + MS);
    assert_int_equal(lock.phase, WEIR__LOCK_LOST);

    begin(WEIR_SECOND, 0, 0);
    answer(true, 7, 0, MS);
    assert_int_equal(event(WEIR__LOCK_TIME, lock.until).verb, WEIR__LOCK_FREE);
    assert_int_equal(lock.phase, WEIR__LOCK_LOST);

    begin(WEIR_SECOND, 0, 0);
    answer(true, 7, 0, MS);
    event(WEIR__LOCK_TIME, lock.due);
    assert_int_equal(answer(true, 9, 0, lock.sent + MS).verb, WEIR__LOCK_FREE);
    assert_int_equal(lock.phase, WEIR__LOCK_LOST);
}

TEST(test_D7_a_grant_that_comes_too_late_is_asked_for_again)
{
    begin(100 * MS, WEIR_SECOND, 0);
    assert_int_equal(answer(true, 7, 0, 99 * MS).verb, WEIR__LOCK_NOTHING);
    assert_int_equal(lock.phase, WEIR__LOCK_WAITING);
    assert_int_equal(event(WEIR__LOCK_TIME, lock.due).verb, WEIR__LOCK_WAIT);
}

TEST(test_D7_replies_that_make_no_sense)
{
    static const char *const replies[] = {
        "-ERR no\r\n",
        ":1\r\n",
        "*6\r\n:1\r\n:1\r\n:1\r\n:0\r\n:0\r\n:0\r\n",
        "*6\r\n:1\r\n:1\r\n:-1\r\n:0\r\n:0\r\n$0\r\n\r\n",
        "*5\r\n:1\r\n:1\r\n:1\r\n:0\r\n:0\r\n",
    };
    struct weir__lock_reply reply;
    struct weir__text why;

    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        struct weir__text text = { replies[i], strlen(replies[i]) };
        assert_false(weir__lock_reply(&reply, text, &why));
    }
}
