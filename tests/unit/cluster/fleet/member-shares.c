/* member-shares.c -- the step of a member: what it sends, and which part is in force until when. */
#include "unit/test.h"

#include "cluster/fleet/member-shares.h"

#define MS WEIR_MILLISECOND

static struct weir__member member;

static struct weir__member_send event(int kind, int64_t offer, weir_time now)
{
    struct weir__member_event e = { .answer = { .offer = offer, .members = 2 } };

    e.kind = kind;
    return weir__member_step(&member, &e, now);
}

static void begin(void)
{
    member = (struct weir__member){ .beat = 160 * MS, .weight = 1, .want = WEIR__PART_ONE };
}

TEST(test_D4_beats_and_has_what_is_offered)
{
    begin();
    struct weir__member_send send = event(WEIR__MEMBER_TIME, 0, 1000 * MS);
    assert_fields(send, (verb, WEIR__MEMBER_BEATS), (seq, 1), (part, 0), (timeout, 160 * MS));
    assert_int_equal(event(WEIR__MEMBER_TIME, 0, 1001 * MS).verb, WEIR__MEMBER_NOTHING);
    assert_int_equal(event(WEIR__MEMBER_ANSWER, 500000, 1010 * MS).verb, WEIR__MEMBER_NOTHING);
    assert_fields(member, (part, 500000), (until, (1000 + 450) * MS), (due, 1160 * MS));
    send = event(WEIR__MEMBER_TIME, 0, 1160 * MS);
    assert_fields(send, (verb, WEIR__MEMBER_BEATS), (seq, 2), (part, 500000));
}

TEST(test_D4_a_part_ends_three_beats_after_it_was_asked_for)
{
    begin();
    event(WEIR__MEMBER_TIME, 0, 0);
    event(WEIR__MEMBER_ANSWER, 500000, 5 * MS);
    for (weir_time now = 160 * MS; now < 450 * MS; now += 160 * MS) {
        assert_int_equal(event(WEIR__MEMBER_TIME, 0, now).part, 500000);
        assert_int_equal(event(WEIR__MEMBER_FAILED, 0, now + 159 * MS).verb, WEIR__MEMBER_NOTHING);
    }
    assert_int_equal(weir__member_part(&member, 450 * MS - 1), 500000);
    assert_int_equal(weir__member_part(&member, 450 * MS), 0);
    assert_int_equal(event(WEIR__MEMBER_TIME, 0, 480 * MS).part, 0);
}

TEST(test_D4_an_answer_that_says_later_changes_nothing)
{
    begin();
    event(WEIR__MEMBER_TIME, 0, 0);
    event(WEIR__MEMBER_ANSWER, -1, 5 * MS);
    assert_int_equal(weir__member_part(&member, 6 * MS), 0);
}

TEST(test_D4_leaving_ends_the_part_first)
{
    begin();
    event(WEIR__MEMBER_TIME, 0, 0);
    assert_int_equal(event(WEIR__MEMBER_LEAVE, 0, 1 * MS).verb, WEIR__MEMBER_NOTHING);
    assert_int_equal(event(WEIR__MEMBER_ANSWER, 500000, 5 * MS).verb, WEIR__MEMBER_LEAVES);
    assert_int_equal(weir__member_part(&member, 6 * MS), 0);
    assert_int_equal(event(WEIR__MEMBER_ANSWER, 0, 9 * MS).verb, WEIR__MEMBER_NOTHING);
    assert_int_equal(event(WEIR__MEMBER_TIME, 0, 900 * MS).verb, WEIR__MEMBER_NOTHING);
}

TEST(test_D4_replies_that_make_no_sense)
{
    static const char *const replies[] = {
        "-ERR no\r\n",
        ":1\r\n",
        "*5\r\n:1000001\r\n:1\r\n:0\r\n:0\r\n:0\r\n",
        "*5\r\n:-2\r\n:1\r\n:0\r\n:0\r\n:0\r\n",
        "*5\r\n:1\r\n:1\r\n:0\r\n$1\r\n0\r\n:0\r\n",
        "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n",
    };
    struct weir__member_answer answer;
    struct weir__text why;

    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        struct weir__text text = { replies[i], strlen(replies[i]) };
        assert_false(weir__member_reply(&answer, text, &why));
    }
}
