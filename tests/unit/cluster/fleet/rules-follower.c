/* rules-follower.c -- the step of a node that follows a document, and its copy on the disk. */
#include "unit/test.h"

#include "cluster/fleet/rules-follower.h"

#define MS WEIR_MILLISECOND

static struct weir__follower follower;

static int event(int kind, int64_t version, weir_time now)
{
    struct weir__follower_event e = { .of = { version, version * 10 } };

    e.kind = kind;
    return (int)weir__follower_step(&follower, &e, now).verb;
}

static void refuse(const char *why, weir_time now)
{
    struct weir__follower_event e = { .kind = WEIR__FOLLOWER_APPLIED, .why = why };

    assert_int_equal(weir__follower_step(&follower, &e, now).verb, WEIR__FOLLOWER_POLL);
}

TEST(test_D6_a_version_is_polled_fetched_applied_and_reported)
{
    follower = (struct weir__follower){ 0 };
    assert_int_equal(event(WEIR__FOLLOWER_TIME, 0, 0), WEIR__FOLLOWER_POLL);
    assert_int_equal(event(WEIR__FOLLOWER_TIME, 0, 900 * MS), WEIR__FOLLOWER_NOTHING);
    assert_int_equal(event(WEIR__FOLLOWER_POLLED, 7, MS), WEIR__FOLLOWER_FETCH);
    assert_int_equal(event(WEIR__FOLLOWER_FETCHED, 7, 2 * MS), WEIR__FOLLOWER_APPLY);
    assert_int_equal(follower.runs.version, 0);
    assert_int_equal(event(WEIR__FOLLOWER_APPLIED, 7, 3 * MS), WEIR__FOLLOWER_POLL);
    assert_int_equal(follower.runs.version, 7);
    assert_int_equal(event(WEIR__FOLLOWER_POLLED, 7, 4 * MS), WEIR__FOLLOWER_NOTHING);
    assert_int_equal(event(WEIR__FOLLOWER_TIME, 0, 502 * MS), WEIR__FOLLOWER_NOTHING);
    assert_int_equal(event(WEIR__FOLLOWER_TIME, 0, 503 * MS), WEIR__FOLLOWER_POLL);
}

TEST(test_D6_a_refused_version_is_reported_and_not_tried_again)
{
    follower = (struct weir__follower){ .runs = { 6, 60 } };
    event(WEIR__FOLLOWER_TIME, 0, 0);
    event(WEIR__FOLLOWER_POLLED, 7, MS);
    event(WEIR__FOLLOWER_FETCHED, 7, 2 * MS);
    refuse("no such list", 3 * MS);
    assert_fields(follower, (runs.version, 6), (refused.version, 7));
    assert_string_equal(follower.why, "no such list");
    assert_int_equal(event(WEIR__FOLLOWER_POLLED, 7, 4 * MS), WEIR__FOLLOWER_NOTHING);
    event(WEIR__FOLLOWER_TIME, 0, 600 * MS);
    assert_int_equal(event(WEIR__FOLLOWER_POLLED, 8, 601 * MS), WEIR__FOLLOWER_FETCH);
    assert_int_equal(follower.refused.version, 0);
}

TEST(test_D6_another_version_with_the_same_number)
{
    follower = (struct weir__follower){ .runs = { 6, 61 } }; /* a failover has lost it */
    event(WEIR__FOLLOWER_TIME, 0, 0);
    assert_int_equal(event(WEIR__FOLLOWER_POLLED, 6, MS), WEIR__FOLLOWER_FETCH);
}

TEST(test_D6_no_answer_and_news)
{
    follower = (struct weir__follower){ .runs = { 6, 60 } };
    event(WEIR__FOLLOWER_TIME, 0, 0);
    assert_int_equal(event(WEIR__FOLLOWER_FAILED, 0, MS), WEIR__FOLLOWER_NOTHING);
    assert_int_equal(follower.runs.version, 6);
    assert_int_equal(event(WEIR__FOLLOWER_NEWS, 0, 2 * MS), WEIR__FOLLOWER_POLL);
    assert_int_equal(event(WEIR__FOLLOWER_NEWS, 0, 3 * MS), WEIR__FOLLOWER_NOTHING);
    assert_int_equal(event(WEIR__FOLLOWER_POLLED, 6, 4 * MS), WEIR__FOLLOWER_NOTHING);
    assert_int_equal(event(WEIR__FOLLOWER_TIME, 0, 5 * MS), WEIR__FOLLOWER_POLL); /* for the news */
    assert_int_equal(event(WEIR__FOLLOWER_POLLED, 5, 6 * MS), WEIR__FOLLOWER_FETCH);
    assert_int_equal(event(WEIR__FOLLOWER_FETCHED, 4, 7 * MS), WEIR__FOLLOWER_NOTHING);
}

static const struct weir__text rules = { "rules", 5 };

static void write_copy(struct weir__buffer *out, weir_time taken)
{
    struct weir__copy c = { rules, { 7, 70 }, taken, { "version: 1\n", 11 } };

    weir__copy_write(&c, out);
    assert_false(out->failed);
}

static int read_copy(const struct weir__buffer *b, size_t len, weir_time now)
{
    struct weir__copy c = { .of = { -1, 0 } };
    struct weir_error error = { 0 };
    char *exact = malloc(len + !len); /* so that a sanitizer sees a byte too far */

    memcpy(exact, b->bytes, len);
    int code = weir__copy_read(&c, rules, (struct weir__text){ exact, len }, now, &error);
    if (code == WEIR_OK) {
        assert_fields(c, (of.version, 7), (of.edit, 70), (text.len, 11));
        assert_memory_equal(c.text.bytes, "version: 1\n", 11);
    } else {
        assert_int_equal(c.of.version, -1);
        assert_true(error.text[0] != 0);
    }
    free(exact);
    return code;
}

TEST(test_D6_a_copy_is_read_whole_or_not_at_all)
{
    FINALLY(weir__buffer_free) struct weir__buffer b = { 0 };

    write_copy(&b, 1000 * WEIR_SECOND);
    assert_ok(read_copy(&b, b.len, 1000 * WEIR_SECOND));
    for (size_t i = 0; i < b.len; i++) {
        assert_int_equal(read_copy(&b, i, 1000 * WEIR_SECOND), WEIR_INVALID);
        for (int bit = 0; bit < 8; bit++) {
            b.bytes[i] = (char)(b.bytes[i] ^ 1 << bit);
            assert_int_equal(read_copy(&b, b.len, 1000 * WEIR_SECOND), WEIR_INVALID);
            b.bytes[i] = (char)(b.bytes[i] ^ 1 << bit);
        }
    }
    weir__buffer_text(&b, "more");
    assert_int_equal(read_copy(&b, b.len, 1000 * WEIR_SECOND), WEIR_INVALID);
}

TEST(test_D6_a_copy_of_another_document_or_too_old)
{
    FINALLY(weir__buffer_free) struct weir__buffer b = { 0 };
    struct weir__copy c;
    struct weir_error error = { 0 };
    weir_time taken = WEIR__COPY_AGE_MAX * 9;

    write_copy(&b, taken);
    assert_ok(read_copy(&b, b.len, taken + WEIR__COPY_AGE_MAX));
    assert_int_equal(read_copy(&b, b.len, taken + WEIR__COPY_AGE_MAX + 1), WEIR_INVALID);
    assert_int_equal(read_copy(&b, b.len, taken - 25 * 3600 * WEIR_SECOND), WEIR_INVALID);
    assert_int_equal(weir__copy_read(&c, (struct weir__text){ "lists", 5 },
                                     (struct weir__text){ b.bytes, b.len }, taken, &error),
                     WEIR_INVALID);
}
