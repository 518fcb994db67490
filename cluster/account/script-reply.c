/* script-reply.c -- decisions from what the scripts have answered.
 *
 * They answer the state before the ask, in few numbers; the decision is what lib/algo says about
 * such a state.
 */
#include "cluster/account/call.h"

#include <endian.h>
#include <string.h>

#include "algo/debt.h"
#include "algo/window.h"
#include "wire/resp-reply.h"

#define NUMBERS    7                  /* at most */
#define NUMBER_MAX ((int64_t)1 << 54) /* a script counts to 2^53 */

/* Of one item: decide.lua's five. */
struct answer {
    int64_t granted, now, state[3]; /* us */
};

static bool is_window(const struct weir_plan *plan)
{
    return plan->algo == &weir__fixed_window || plan->algo == &weir__calendar;
}

/* A decision on a state of two words; the ask is for what was granted, or needed.  A script
 * promises nobody a later window. */
static bool decide_small(struct weir__account_item *it, int64_t granted, int64_t state[2],
                         weir_time now)
{
    struct weir_ask ask = it->ask;

    ask.now = now;
    ask.cost = granted > 0 ? granted : ask.cost;
    ask.wait_max = is_window(it->plan) ? 0 : ask.wait_max;
    weir_step(it->plan, state, &ask, &it->decision);
    it->units = granted;
    return it->decision.allowed == (granted > 0);
}

/* A draw may get nothing although there is something left. */
static bool decide_none(struct weir__account_item *it, int64_t state[2], weir_time now)
{
    struct weir_ask need = { .now = now, .cost = it->ask.cost };

    weir__draw_step(it->plan, state, &need, &(struct weir__drawn){ .units = 0 }, &it->decision);
    it->units = 0;
    return true;
}

static weir_time gone_at(const struct weir_plan *plan, int64_t instant)
{
    const struct weir_limit *l = &plan->limit;
    weir__i128 width = plan->by_bucket.by, t;

    if (plan->algo == &weir__sliding_log)
        t = (weir__i128)weir__reply_time(instant) + l->period;
    else
        t = l->loose ? (instant + l->buckets) * width : (instant + 1) * width + l->period;
    return t > INT64_MAX ? INT64_MAX : t < 0 ? 0 : (weir_time)t;
}

/* The windows that slide: from what is used, the newest and the one that has to leave. */
static bool decide_sliding(struct weir__account_item *it, const struct answer *a, bool draws)
{
    const struct weir_plan *plan = it->plan;
    struct weir_decision *d = &it->decision;
    bool log = plan->algo == &weir__sliding_log;
    weir_time now = weir__reply_time(a->now);
    int64_t left = plan->limit.count - a->state[0] - a->granted,
            newest = a->granted == 0 ? a->state[1]
                     : log           ? a->now
                                     : now / (int64_t)plan->by_bucket.by;

    weir__decision_begin(plan, d);
    d->remaining = left < 0 ? 0 : left;
    weir_time reset = newest < 0 ? 0 : gone_at(plan, newest) - now;
    d->reset = reset < 0 ? 0 : reset;
    it->units = a->granted;
    if (a->granted > 0)
        return weir__grant(d, 0);
    bool room = it->ask.cost <= left;
    weir__refuse(d, room ? 0 : gone_at(plan, a->state[2]) - now);
    return room ? draws : d->retry > 0;
}

static bool decide_item(struct weir__account_item *it, const struct answer *a, bool draws)
{
    const struct weir_plan *plan = it->plan;
    weir_time now = weir__reply_time(a->now);
    int64_t rate = weir__account_rate(plan);
    weir__i128 owed = (weir__i128)a->state[0] * rate + a->state[1];
    int64_t state[2] = { now, (int64_t)owed };

    if (plan->algo == &weir__sliding_window || plan->algo == &weir__sliding_log)
        return decide_sliding(it, a, draws);
    if (is_window(plan)) {
        state[0] = weir__reply_time(a->state[1]);
        state[1] = a->state[0];
    } else if (owed < 0 || owed > WEIR__OWED_MAX) {
        return false;
    }
    return draws && a->granted == 0 ? decide_none(it, state, now)
                                    : decide_small(it, a->granted, state, now);
}

/* -------------------------------------------------------------- replies ---- */

static const char *read_numbers(const char *at, size_t n, int64_t *out)
{
    struct weir__resp_value value;

    for (size_t i = 0; i < n; i++) {
        at = weir__resp_value(at, &value);
        if (value.kind != ':' || value.integer > NUMBER_MAX || value.integer < -NUMBER_MAX)
            return NULL;
        if (i < NUMBERS)
            out[i] = value.integer;
    }
    return at;
}

/* One integer: of a meter. */
static bool read_meter(struct weir__account_call *call, int64_t n)
{
    struct weir__account_item *it = &call->items[0];
    bool granted = n >= 0;
    weir_time now = WEIR_SECOND; /* any will do */

    return decide_small(it, granted ? it->ask.cost : 0, (int64_t[]){ now, granted ? n : -1 - n },
                        now);
}

/* Numbers packed into a string; NUMBERS at most.  Their number; 0: they are not numbers. */
static size_t unpack_numbers(struct weir__text text, int64_t *out)
{
    size_t n = text.len / 8;

    if (text.len % 8 != 0 || n > NUMBERS)
        return 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t number;
        memcpy(&number, text.bytes + 8 * i, sizeof(number));
        out[i] = (int64_t)le64toh(number);
        if (out[i] > NUMBER_MAX || out[i] < -NUMBER_MAX)
            return 0;
    }
    return n;
}

/* Of a window that has granted, in one number: the microseconds to its end times count + 1, and the
 * units used before. */
static bool read_brief(struct weir__account_call *call, int64_t n)
{
    struct weir__account_item *it = &call->items[0];
    int64_t count = it->plan->limit.count, used = n % (count + 1), span = n / (count + 1);

    if (n < 0 || span == 0 || used > count - it->ask.cost)
        return false;
    weir__decision_begin(it->plan, &it->decision);
    it->decision.remaining = count - used - it->ask.cost;
    it->decision.reset = weir__reply_time(span);
    it->units = it->ask.cost;
    return weir__grant(&it->decision, 0);
}

/* Digits, at most 15, at *at; -1: there are none. */
static int64_t take_digits(const char **at, const char *end)
{
    const char *from = *at;
    int64_t n = 0;

    for (; *at < end && *at - from < 15 && **at >= '0' && **at <= '9'; (*at)++)
        n = 10 * n + (**at - '0');
    return *at > from ? n : -1;
}

/* The account before; then seconds, a sign and microseconds. */
static bool read_window(struct weir__account_call *call, struct weir__text text)
{
    struct weir__account_item *it = &call->items[0];
    size_t head = weir__account_head(it->plan).len, len = head + weir__account_state_max(it->plan);
    int64_t state[2];

    if (text.len < len + 3 ||
        !weir__account_read(it->plan, state, (const unsigned char *)text.bytes + head, len - head))
        return false;
    const char *at = text.bytes + len, *end = text.bytes + text.len;
    int64_t seconds = take_digits(&at, end);
    char sign = at < end ? *at++ : 0;
    int64_t us = take_digits(&at, end);
    if (seconds < 0 || us < 0 || us >= 1000000 || at < end || (sign != '+' && sign != '-') ||
        seconds > NUMBER_MAX / 1000000)
        return false;
    return decide_small(it, sign == '+' ? it->ask.cost : 0, state,
                        weir__reply_time(seconds * 1000000 + us));
}

static struct answer answer_of(const int64_t numbers[NUMBERS])
{
    return (struct answer){ numbers[0], numbers[1], { numbers[2], numbers[3], numbers[4] } };
}

/* Five numbers; then whether it is spent, and this node's share. */
static bool read_drawn(struct weir__account_call *call, struct weir__text text)
{
    struct weir__account_item *it = &call->items[0];
    int64_t numbers[NUMBERS];

    if (unpack_numbers(text, numbers) != NUMBERS || numbers[6] < 0)
        return false;
    struct answer a = answer_of(numbers);
    weir_time now = weir__reply_time(a.now);
    if (a.granted < 0 || a.now < 0 || !decide_item(it, &a, true))
        return false;
    call->drawn = (struct weir__drawn){
        .units = it->units,
        .share = numbers[6],
        .spent = numbers[5] != 0,
        .at = now,
        .life = weir__drawn_life(it->plan, now, now, &it->decision),
    };
    return true;
}

static bool read_items(struct weir__account_call *call, const char *at, size_t n)
{
    struct weir__resp_value list;

    if (n != call->n)
        return false;
    for (size_t i = 0; i < call->n; i++) {
        int64_t numbers[NUMBERS] = { 0 };
        at = weir__resp_value(at, &list);
        if (list.kind != '*' || (at = read_numbers(at, list.n, numbers)) == NULL)
            return false;
        struct answer a = answer_of(numbers);
        if (a.granted < 0 || a.now < 0)
            return false;
        if (call->verb == WEIR__ACCOUNT_REPAY)
            call->items[i].units = a.granted;
        else if (call->verb != WEIR__ACCOUNT_GIVE && !decide_item(&call->items[i], &a, false))
            return false;
    }
    return true;
}

/* Two or four: of a log. */
static bool read_log(struct weir__account_call *call, struct weir__text text)
{
    int64_t numbers[NUMBERS] = { 0 };
    size_t n = unpack_numbers(text, numbers);
    bool granted = numbers[0] >= 0;

    if (n != (granted ? 2u : 4u))
        return false;
    struct answer a = { granted ? call->items[0].ask.cost : 0,
                        numbers[1],
                        { granted ? numbers[0] : -1 - numbers[0], numbers[2], numbers[3] } };
    return a.now >= 0 && decide_item(&call->items[0], &a, false);
}

bool weir__script_reply(struct weir__account_call *call, const char *reply)
{
    struct weir__resp_value value;
    const char *at = weir__resp_value(reply, &value);
    enum weir__script script = (enum weir__script)(call->script - weir__account_scripts);

    if (script == WEIR__SCRIPT_METER)
        return value.kind == ':' && read_meter(call, value.integer);
    if (script == WEIR__SCRIPT_DECIDE && call->verb == WEIR__ACCOUNT_DRAW)
        return value.kind == '$' && read_drawn(call, value.text);
    if (script == WEIR__SCRIPT_DECIDE)
        return value.kind == '*' && read_items(call, at, value.n);
    if (script == WEIR__SCRIPT_WINDOW && value.kind == ':')
        return read_brief(call, value.integer);
    if (value.kind != '$')
        return false;
    return script == WEIR__SCRIPT_WINDOW ? read_window(call, value.text)
                                         : read_log(call, value.text);
}
