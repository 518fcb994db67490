/* call.c -- asks on accounts: what is sent, and replies that make no sense. */
#include "unit/test.h"

#include "cluster/account/call.h"
#include "random.h"
#include "unit/fixture.h"
#include "wire/resp-reply.h"

static struct weir_plan plan_of(const char *text)
{
    struct weir_limit limit = limit_of(text);
    struct weir_plan plan;

    assert_int_equal(weir__plan_make(&plan, &limit, NULL), WEIR_OK);
    return plan;
}

static const char *script_for(const char *limit, enum weir__account_verb verb, int64_t cost,
                              weir_time wait)
{
    struct weir_plan plan = plan_of(limit);
    struct weir__account_item item = { .key = { "k", 1 },
                                       .plan = &plan,
                                       .ask = { .cost = cost, .wait_max = wait } };
    struct weir__account_call call = {
        .verb = verb, .items = &item, .n = 1, .near = 1000 * S, .demand = { "d", 1 }
    };

    assert_int_equal(weir__account_begin(&call, NULL), WEIR_OK);
    weir__account_free(&call);
    return call.script->name;
}

TEST(test_usual_asks_take_one_script)
{
    static const struct {
        const char *limit;
        enum weir__account_verb verb;
        int64_t cost;
        weir_time wait;
        const char *script;
    } rows[] = {
        { "5/s", WEIR__ACCOUNT_TAKE, 1, 0, "meter" },
        { "gcra 5/s", WEIR__ACCOUNT_TAKE, 1, 0, "meter" },
        { "fixed-window 5/s align=first", WEIR__ACCOUNT_TAKE, 5, 0, "window" },
        { "5/day", WEIR__ACCOUNT_TAKE, 1, 0, "window" },
        { "5/s", WEIR__ACCOUNT_TAKE, 1, S, "decide" },
        { "5/s", WEIR__ACCOUNT_TAKE, 1, -S, "meter" }, /* it may not wait any more */
        { "5/s", WEIR__ACCOUNT_DRAW, 1, 0, "decide" },
        { "5/s", WEIR__ACCOUNT_GIVE, 7, 0, "decide" },
        { "5/s", WEIR__ACCOUNT_REPAY, 1, 0, "decide" },
        { "sliding-log 5/s", WEIR__ACCOUNT_REPAY, 1, 0, "read" },
        { "leaky-bucket 5/s queue 5", WEIR__ACCOUNT_TAKE, 1, 0, "decide" },
        { "token-bucket 1009/1d burst 100000", WEIR__ACCOUNT_TAKE, 1, 0, "decide" },
        { "sliding-window 5/s", WEIR__ACCOUNT_TAKE, 1, 0, "decide" },
        { "sliding-log 5/s", WEIR__ACCOUNT_TAKE, 1, 0, "sliding_log" },
        { "5/s", WEIR__ACCOUNT_PEEK, 1, 0, "read" },
        { "5/s", WEIR__ACCOUNT_TAKE, 6, 0, "read" }, /* never */
        { "5/s", WEIR__ACCOUNT_TAKE, 0, 0, "read" }, /* nothing */
        { "smooth 5/s", WEIR__ACCOUNT_TAKE, 1, 0, "read" },
        { "warm-up 5/s", WEIR__ACCOUNT_TAKE, 1, 0, "read" },
        { "fixed-window 5/15ns", WEIR__ACCOUNT_TAKE, 1, 0, "read" },
        { "sliding-log 5/100d", WEIR__ACCOUNT_TAKE, 1, 0, "read" },
        { "sliding-window 5/s buckets=1000", WEIR__ACCOUNT_TAKE, 1, 0, "read" },
        { "gcra 13098/3ns burst 331710922196261033", WEIR__ACCOUNT_TAKE, 4738727459946586, 0,
          "read" },
        { "sliding-window 5/16us buckets=16", WEIR__ACCOUNT_TAKE, 1, 0, "decide" },
        { "sliding-window 5/16us buckets=17", WEIR__ACCOUNT_TAKE, 1, 0, "read" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        print_message("%s\n", rows[i].limit);
        assert_string_equal(script_for(rows[i].limit, rows[i].verb, rows[i].cost, rows[i].wait),
                            rows[i].script);
    }
}

/* A wait that is over is none, as everywhere; and a draw does not wait. */
TEST(test_waits_that_are_none)
{
    static const struct {
        enum weir__account_verb verb;
        weir_time wait;
    } rows[] = {
        { WEIR__ACCOUNT_TAKE, -S },
        { WEIR__ACCOUNT_TAKE, INT64_MIN },
        { WEIR__ACCOUNT_DRAW, S },
        { WEIR__ACCOUNT_REPAY, -S },
    };
    struct weir_plan plan = plan_of("leaky-bucket 5/s queue 5");

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir__account_item items[2];
        struct weir__account_call calls[2];
        for (int waits = 0; waits < 2; waits++) {
            items[waits] =
                (struct weir__account_item){ .key = { "k", 1 },
                                             .plan = &plan,
                                             .ask = { .cost = 1,
                                                      .wait_max = waits ? rows[i].wait : 0 } };
            calls[waits] = (struct weir__account_call){ .verb = rows[i].verb,
                                                        .items = &items[waits],
                                                        .n = 1,
                                                        .near = 1000 * S,
                                                        .demand = { "d", 1 } };
            assert_int_equal(weir__account_begin(&calls[waits], NULL), WEIR_OK);
        }
        assert_int_equal(calls[0].words.len, calls[1].words.len);
        assert_memory_equal(calls[0].words.bytes, calls[1].words.bytes, calls[0].words.len);
        assert_int_equal(calls[0].command.len, calls[1].command.len);
        assert_memory_equal(calls[0].command.bytes, calls[1].command.bytes, calls[0].command.len);
        weir__account_free(&calls[0]);
        weir__account_free(&calls[1]);
    }
}

TEST(test_asks_that_make_no_sense)
{
    struct weir_plan plan = plan_of("5/s");
    struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = -1 } };
    struct weir__account_call call = { .items = &item, .n = 1 };
    struct weir_error error = { 0 };

    assert_int_equal(weir__account_begin(&call, &error), WEIR_INVALID);
    call.n = 0;
    assert_int_equal(weir__account_begin(&call, &error), WEIR_INVALID);
    call.n = WEIR__ACCOUNT_ITEMS_MAX + 1;
    assert_int_equal(weir__account_begin(&call, &error), WEIR_INVALID);
    weir__account_free(&call);
}

TEST(test_a_state_that_is_too_large_for_redis)
{
    struct weir_plan plan = plan_of("sliding-window 5/1h buckets=60000");
    struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = 1 } };
    struct weir__account_call call = { .items = &item, .n = 1 };
    struct weir_error error = { 0 };

    assert_int_equal(weir__account_begin(&call, &error), WEIR_OK);
    plan = plan_of("sliding-window 5/1h buckets=70000");
    assert_int_equal(weir__account_begin(&call, &error), WEIR_INVALID);
    assert_string_equal(error.text, "in Redis a key has at most 262144 bytes, and this limit needs "
                                    "280024; fewer buckets would do");
    call.verb = WEIR__ACCOUNT_RESET;
    assert_int_equal(weir__account_begin(&call, &error), WEIR_OK);
    weir__account_free(&call);
}

TEST(test_a_key_has_one_place)
{
    struct weir_plan plan = plan_of("5/s");
    const struct weir__account_item item = { .key = { "k", 1 },
                                             .plan = &plan,
                                             .ask = { .cost = 1 } };
    struct weir__account_item items[2] = { item, item };
    struct weir__account_call calls[] = {
        { .items = items, .n = 2 },
        { .items = items, .n = 1, .id = { "k", 1 } },
        { .verb = WEIR__ACCOUNT_DRAW, .items = items, .n = 1, .demand = { "k", 1 } },
        { .verb = WEIR__ACCOUNT_DRAW,
          .items = items,
          .n = 1,
          .demand = { "d", 1 },
          .id = { "d", 1 } },
        { .items = items, .n = 1, .id = { "d", 1 }, .demand = { "k", 1 } }, /* which is not used */
    };

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct weir_error error = { .text = "" };
        int code = weir__account_begin(&calls[i], &error);
        assert_int_equal(code, i < 4 ? WEIR_INVALID : WEIR_OK);
        assert_string_equal(
            error.text, i >= 4           ? ""
                        : calls[i].n > 1 ? "the same key twice; use two, as {k}:minute and {k}:day"
                                         : "the same key twice");
        weir__account_free(&calls[i]);
    }
}

/* An ask of `cost` units on a key that holds `bytes`, after the first reply. */
static int look_at(const void *bytes, size_t len, int64_t cost, struct weir_error *error)
{
    struct weir_plan plan = plan_of("5/s");
    struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = cost } };
    struct weir__account_call call = { .items = &item, .n = 1 };
    struct weir__buffer reply = { 0 };

    weir__buffer_text(&reply, "*2\r\n:1000000\r\n");
    weir__buffer_bulk(&reply, bytes, len);
    assert_int_equal(weir__account_begin(&call, error), WEIR_OK);
    int code = weir__account_reply(&call, (struct weir__text){ reply.bytes, reply.len }, error);
    weir__buffer_free(&reply);
    weir__account_free(&call);
    return code;
}

TEST(test_an_empty_string_is_no_account)
{
    struct weir_error error = { 0 };

    assert_int_equal(look_at("", 0, 1, &error), WEIR_INVALID);
    assert_non_null(strstr(error.text, "empty string"));
}

/* It is written anew if something is taken, and not before. */
TEST(test_a_refusal_leaves_the_account_of_another_algorithm)
{
    struct weir_plan plan = plan_of("fixed-window 5/s");
    struct weir__account_head head = weir__account_head(&plan);
    int64_t window[2] = { 2 * S, 3 };
    unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX + 32];
    size_t len = head.len;

    memcpy(bytes, head.bytes, len);
    len += weir__account_write(&plan, window, bytes + len);
    assert_int_equal(look_at(bytes, len, 6, NULL), WEIR_OK);
    assert_int_equal(look_at(bytes, len, 0, NULL), WEIR_OK);
    assert_int_equal(look_at(bytes, len, 5, NULL), WEIR__ACCOUNT_AGAIN);
}

/* So that callers with the larger count do not find units again. */
TEST(test_D3_a_refusal_by_a_smaller_count_leaves_the_account)
{
    static const struct {
        enum weir__account_verb verb;
        const char *larger, *limit;
        int64_t used;
        int code;
    } rows[] = {
        { WEIR__ACCOUNT_TAKE, "fixed-window 8/10s", "fixed-window 5/10s", 6, WEIR_OK },
        /* it comes over; another window */
        { WEIR__ACCOUNT_TAKE, "fixed-window 8/10s", "fixed-window 5/10s", 5, WEIR__ACCOUNT_AGAIN },
        { WEIR__ACCOUNT_TAKE, "fixed-window 8/10s", "fixed-window 5/2s", 6, WEIR__ACCOUNT_AGAIN },
        { WEIR__ACCOUNT_REPAY, "fixed-window 8/10s", "fixed-window 5/10s", 6, WEIR_OK },
        { WEIR__ACCOUNT_REPAY, "fixed-window 8/10s", "fixed-window 5/10s", 5, WEIR__ACCOUNT_AGAIN },
        { WEIR__ACCOUNT_TAKE, "sliding-log 8/10s", "sliding-log 5/10s", 6, WEIR_OK },
        { WEIR__ACCOUNT_TAKE, "sliding-log 8/10s", "sliding-log 5/10s", 5, WEIR__ACCOUNT_AGAIN },
        { WEIR__ACCOUNT_TAKE, "sliding-log 8/10s", "sliding-log 5/10s", 4, WEIR__ACCOUNT_AGAIN },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_plan larger = plan_of(rows[i].larger), plan = plan_of(rows[i].limit);
        struct weir__account_head head = weir__account_head(&larger);
        uint64_t used[32] = { 0 };
        unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX + 256];
        struct weir_decision d;
        struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = 1 } };
        struct weir__account_call call = { .verb = rows[i].verb, .items = &item, .n = 1 };
        struct weir__buffer reply = { 0 };

        weir_step(&larger, used, &(struct weir_ask){ .cost = rows[i].used, .now = S / 2 }, &d);
        memcpy(bytes, head.bytes, head.len);
        size_t len = head.len + weir__account_write(&larger, used, bytes + head.len);
        call.demand = (struct weir_key){ "d", rows[i].verb == WEIR__ACCOUNT_REPAY };
        call.drawn_at = S / 2;
        weir__buffer_text(&reply, rows[i].verb == WEIR__ACCOUNT_REPAY ? "*3\r\n" : "*2\r\n");
        weir__buffer_text(&reply, ":1000000\r\n");
        weir__buffer_bulk(&reply, (char *)bytes, len);
        weir__buffer_text(&reply, rows[i].verb == WEIR__ACCOUNT_REPAY ? "$-1\r\n" : "");
        assert_int_equal(weir__account_begin(&call, NULL), WEIR_OK);
        assert_int_equal(
            weir__account_reply(&call, (struct weir__text){ reply.bytes, reply.len }, NULL),
            rows[i].code);
        weir__buffer_free(&reply);
        weir__account_free(&call);
    }
}

/* Redis's clock is an hour behind what both have seen: who looks next does so from there. */
TEST(test_D1_several_that_are_refused_follow_a_clock_that_was_set_back)
{
    struct weir_plan plan = plan_of("5/s");
    struct weir__account_head head = weir__account_head(&plan);
    unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX + 64], used[32] = { 0 };
    size_t len = head.len;
    struct weir__account_item items[] = {
        { .key = { "a", 1 }, .plan = &plan, .ask = { .cost = 5 } },
        { .key = { "b", 1 }, .plan = &plan, .ask = { .cost = 5 } },
    };
    struct weir__account_call call = { .items = items, .n = 2 };
    struct weir__buffer reply = { 0 };
    struct weir_decision d;

    weir_step(&plan, used, &(struct weir_ask){ .cost = 5, .now = 3601 * S }, &d);
    memcpy(bytes, head.bytes, len);
    len += weir__account_write(&plan, used, bytes + len);
    weir__buffer_text(&reply, "*3\r\n:1000000\r\n");
    weir__buffer_bulk(&reply, (char *)bytes, len);
    weir__buffer_bulk(&reply, (char *)bytes, len);
    assert_int_equal(weir__account_begin(&call, NULL), WEIR_OK);
    assert_int_equal(
        weir__account_reply(&call, (struct weir__text){ reply.bytes, reply.len }, NULL),
        WEIR__ACCOUNT_AGAIN);
    assert_false(items[0].decision.allowed);
    weir__buffer_free(&reply);
    weir__account_free(&call);
}

/* What window.lua has answered to an ask of 1 unit of 5 in 10 s. */
static int window_reply(const char *bytes, size_t len, struct weir_decision *out)
{
    struct weir_plan plan = plan_of("fixed-window 5/10s");
    struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = 1 } };
    struct weir__account_call call = { .items = &item, .n = 1 };

    assert_int_equal(weir__account_begin(&call, NULL), WEIR_OK);
    assert_string_equal(call.script->name, "window");
    int code = weir__account_reply(&call, (struct weir__text){ bytes, len }, NULL);
    *out = item.decision;
    weir__account_free(&call);
    return code;
}

TEST(test_a_window_answers_with_one_number)
{
    static const char *const wrong[] = { ":-1\r\n", ":2\r\n", ":24000005\r\n", "_\r\n" };
    const char *right = ":24000002\r\n"; /* 4 s * 6 + 2 */
    struct weir_decision d;

    assert_int_equal(window_reply(right, strlen(right), &d), WEIR_OK);
    assert_true(d.allowed);
    assert_int_equal(d.limit, 5);
    assert_int_equal(d.remaining, 2);
    assert_int_equal(d.reset, 4 * S);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(window_reply(wrong[i], strlen(wrong[i]), &d), WEIR_CORRUPT);
}

/* A refusal: the account, the time in seconds, a sign, and microseconds. */
static const struct {
    const char *tail;
    int code;
} window_tails[] = {
    { "1004-500000", WEIR_OK },
    { "1004+500000", WEIR_CORRUPT },
    { "1004-", WEIR_CORRUPT },
    { "-500000", WEIR_CORRUPT },
    { "1004-1000000", WEIR_CORRUPT },
    { "1004 500000", WEIR_CORRUPT },
    { "", WEIR_CORRUPT },
    { "999999999999999-0", WEIR_CORRUPT },
    { "1004-5x", WEIR_CORRUPT },
    { "1004-0000000000000000", WEIR_CORRUPT },
};

TEST(test_a_window_answers_with_its_account)
{
    struct weir_plan plan = plan_of("fixed-window 5/10s");
    struct weir__account_head head = weir__account_head(&plan);
    int64_t window[2] = { 1010 * S, 5 };
    unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX + 64];
    size_t len = head.len + weir__account_write(&plan, window, bytes + head.len);

    memcpy(bytes, head.bytes, head.len);
    for (size_t i = 0; i < COUNT_OF(window_tails); i++) {
        const char *tail = window_tails[i].tail;
        struct weir__buffer reply = { 0 };
        struct weir_decision d;

        print_message("%s\n", tail);
        memcpy(bytes + len, tail, strlen(tail));
        weir__buffer_bulk(&reply, (char *)bytes, len + strlen(tail));
        assert_int_equal(window_reply(reply.bytes, reply.len, &d), window_tails[i].code);
        weir__buffer_free(&reply);
        if (window_tails[i].code == WEIR_OK) {
            assert_false(d.allowed);
            assert_int_equal(d.retry, 11 * S / 2);
        }
    }
}

/* Redis refuses a longer time, after the accounts were written. */
TEST(test_an_id_is_kept_for_a_century_at_most)
{
    struct weir_plan plan = plan_of("5/s");
    struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = 1 } };
    struct weir__account_call call = {
        .items = &item, .n = 1, .id = { "i", 1 }, .keep = INT64_MAX
    };

    assert_int_equal(weir__account_begin(&call, NULL), WEIR_OK);
    weir__buffer_add(&call.words, "", 1);
    assert_non_null(strstr(call.words.bytes, "\r\n3153600000000\r\n"));
    weir__account_free(&call);
}

/* However often: each time another ask has passed, and the caller knows how long it can wait. */
TEST(test_a_key_that_others_change_is_read_again)
{
    struct weir_plan plan = plan_of("smooth 5/s");
    struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = 1 } };
    struct weir__account_call call = { .items = &item, .n = 1 };
    struct weir_error error = { 0 };

    assert_int_equal(weir__account_begin(&call, &error), WEIR_OK);
    for (int sent = 1;; sent++) {
        bool reads = strcmp(call.script->name, "read") == 0;
        const char *reply = reads ? "*2\r\n:1000000\r\n$-1\r\n" : sent < 1000 ? ":0\r\n" : ":1\r\n";
        int code = weir__account_reply(&call, (struct weir__text){ reply, strlen(reply) }, &error);
        if (sent == 1000) {
            assert_int_equal(code, WEIR_OK);
            break;
        }
        assert_int_equal(code, WEIR__ACCOUNT_AGAIN);
    }
    assert_true(item.decision.allowed);
    weir__account_free(&call);
}

/* Any reply that is RESP: an answer or an error, and nothing else. */
static void put_random_value(struct weir__buffer *to, int depth)
{
    int kind = int_between(0, depth > 2 ? 3 : 5);

    if (kind == 0)
        weir__buffer_format(to, ":%lld\r\n",
                            (long long)(one_in(3) ? (int64_t)roll() : between(-9, 9)));
    else if (kind == 1)
        weir__buffer_text(to, "$-1\r\n");
    else if (kind == 2)
        weir__buffer_text(to, "-ERR no\r\n");
    else if (kind == 3) {
        unsigned char bytes[34] = "W\1\4\5\1\0";
        if (one_in(3))
            memcpy(bytes, one_in(2) ? "I\1" : "D\1", 2);
        int len = int_between(0, sizeof(bytes));
        for (int i = one_in(2) ? 6 : 0; i < len; i++)
            bytes[i] = (unsigned char)roll();
        weir__buffer_format(to, "$%d\r\n", len);
        weir__buffer_add(to, bytes, (size_t)len);
        weir__buffer_text(to, "\r\n");
    } else {
        int n = int_between(0, 5);
        weir__buffer_format(to, "*%d\r\n", n);
        for (int i = 0; i < n; i++)
            put_random_value(to, depth + 1);
    }
}

TEST(test_any_reply_is_answered)
{
    static const char *const limits[] = { "5/s",
                                          "fixed-window 5/s",
                                          "5/day",
                                          "sliding-log 5/s",
                                          "sliding-window 5/s",
                                          "smooth 5/s",
                                          "token-bucket 1009/1d burst 100000" };

    random_state = 3;
    for (int round = 0; round < 20000; round++) {
        struct weir_plan plans[2] = { plan_of(limits[between(0, 6)]),
                                      plan_of(limits[between(0, 6)]) };
        struct weir__account_item items[2] = {
            { .key = { "a", 1 }, .plan = &plans[0], .ask = { .cost = between(0, 6) } },
            { .key = { "b", 1 }, .plan = &plans[1], .ask = { .cost = between(0, 6) } },
        };
        struct weir__account_call call = { .verb = (enum weir__account_verb)between(0, 3),
                                           .items = items,
                                           .n = (size_t)between(1, 2),
                                           .near = 1000 * S,
                                           .demand = { "d", 1 },
                                           .id = { "i", (size_t)between(0, 1) } };
        struct weir_error error = { 0 };
        int code = weir__account_begin(&call, &error);
        code = code == WEIR_OK ? WEIR__ACCOUNT_AGAIN : code;
        for (int i = 0; i < 8 && code == WEIR__ACCOUNT_AGAIN; i++) {
            struct weir__buffer reply = { 0 };
            put_random_value(&reply, 0);
            code =
                weir__account_reply(&call, (struct weir__text){ reply.bytes, reply.len }, &error);
            weir__buffer_free(&reply);
        }
        weir__account_free(&call);
    }
}

TEST(test_a_receipt_of_units_that_may_be_used_in_centuries)
{
    struct weir__receipt receipt = { .n = 0 };
    struct weir_decision d = { .wait = WEIR_NEVER - 1 };

    weir__receipt_note(&receipt, 1, &d, 1800000000 * WEIR_SECOND);
    assert_int_equal(receipt.items[0].ready, WEIR_NEVER / WEIR_MICROSECOND);
}

/* The id was seen: the answer is that of its receipt, and nothing is sent any more. */
TEST(test_a_repeat_is_answered_from_its_receipt)
{
    struct weir_plan plan = plan_of("5/s");
    struct weir__account_item item = { .key = { "k", 1 }, .plan = &plan, .ask = { .cost = 3 } };
    struct weir__account_call call = { .items = &item, .n = 1, .id = { "i", 1 } };
    struct weir__receipt receipt = { .n = 1, .items = { { 3, 2000000 } } };
    unsigned char bytes[WEIR__RECEIPT_SIZE_MAX];
    struct weir__buffer reply = { 0 };
    struct weir_error error = { 0 };
    size_t len = weir__receipt_write(&receipt, bytes);

    assert_int_equal(weir__account_begin(&call, &error), WEIR_OK);
    assert_string_equal(call.script->name, "decide");
    weir__buffer_format(&reply, "*3\r\n:1500000\r\n$-1\r\n$%zu\r\n", len);
    weir__buffer_add(&reply, bytes, len);
    weir__buffer_text(&reply, "\r\n");
    struct weir__text text = { reply.bytes, reply.len };
    assert_int_equal(weir__account_reply(&call, text, &error), WEIR_OK);
    assert_true(call.repeated && item.decision.allowed);
    assert_int_equal(item.units, 3);
    assert_int_equal(item.decision.wait, S / 2);

    call.n = 1; /* of an ask for two keys: another ask */
    receipt.n = 2;
    reply.len = 0;
    len = weir__receipt_write(&receipt, bytes);
    weir__buffer_format(&reply, "*3\r\n:1500000\r\n$-1\r\n$%zu\r\n", len);
    weir__buffer_add(&reply, bytes, len);
    weir__buffer_text(&reply, "\r\n");
    text = (struct weir__text){ reply.bytes, reply.len };
    assert_int_equal(weir__account_begin(&call, &error), WEIR_OK);
    assert_int_equal(weir__account_reply(&call, text, &error), WEIR_INVALID);
    assert_non_null(strstr(error.text, "another ask"));

    receipt = (struct weir__receipt){ .n = 1, .items = { { 3, 2000000 } } };
    reply.len = 0;
    len = weir__receipt_write(&receipt, bytes);
    weir__buffer_format(&reply, "*3\r\n:1500000\r\n$-1\r\n$%zu\r\n", len);
    weir__buffer_add(&reply, bytes, len);
    weir__buffer_text(&reply, "\r\n");
    text = (struct weir__text){ reply.bytes, reply.len };
    item.ask.cost = 4; /* of an ask for fewer units: another ask too */
    assert_int_equal(weir__account_begin(&call, &error), WEIR_OK);
    assert_int_equal(weir__account_reply(&call, text, &error), WEIR_INVALID);
    item.ask.cost = 3;
    call.verb = WEIR__ACCOUNT_GIVE; /* under the id of the take: another ask too */
    assert_int_equal(weir__account_begin(&call, &error), WEIR_OK);
    assert_int_equal(weir__account_reply(&call, text, &error), WEIR_INVALID);
    weir__buffer_free(&reply);
    weir__account_free(&call);
}
