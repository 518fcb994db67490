/* script-words.c -- which script decides on accounts, and the numbers that it needs.
 *
 * A script's numbers are exact below 2^53.  What does not fit (periods of odd nanoseconds, very
 * long logs) is decided by the caller instead (decide-by-caller.c).
 */
#include "cluster/account/call.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "algo/debt.h"

#define EXACT_MAX   WEIR__ACCOUNT_EXACT_MAX
#define RING_MAX    200                /* numbers that Lua takes apart at once */
#define WIDTH_MAX   ((int64_t)1 << 42) /* of buckets in odd nanoseconds */
#define WIDTH_LEAST WEIR_MICROSECOND   /* of narrower ones there are more than Lua can count */
#define STAMP_MAX   6                  /* bytes: decide.lua's low() is exact to there */
#define NUMBERS_MAX 16
#define FORMAT_MAX  32
#define ENDS        4 /* of calendar windows: the last, the present and the next two */
#define TIME_SIZE   9 /* bytes of a time in an account */

void weir__script_word(struct weir__account_call *call, const void *bytes, size_t len)
{
    weir__buffer_bulk(&call->words, bytes, len);
    call->n_words++;
}

void weir__script_number(struct weir__account_call *call, int64_t n)
{
    weir__buffer_bulk_number(&call->words, n);
    call->n_words++;
}

size_t weir__script_key_count(const struct weir__account_call *call)
{
    return call->n + weir__account_has_demand(call) + (call->id.len > 0);
}

void weir__script_keys(struct weir__account_call *call, enum weir__script script)
{
    call->script = &weir__account_scripts[script];
    call->words.len = 0;
    call->n_words = 0;
    weir__script_number(call, (int64_t)weir__script_key_count(call));
    for (size_t i = 0; i < call->n; i++)
        weir__script_word(call, call->items[i].key.bytes, call->items[i].key.len);
    if (weir__account_has_demand(call))
        weir__script_word(call, call->demand.bytes, call->demand.len);
    if (call->id.len > 0)
        weir__script_word(call, call->id.bytes, call->id.len);
}

/* ---------------------------------------------------------------- kinds ---- */

static bool is_whole(weir_time t)
{
    return t % WEIR_MICROSECOND == 0;
}

/* The letter of a script's kind; 0: no script has it. */
static char kind_of(const struct weir_plan *plan)
{
    const struct weir__algo *a = plan->algo;
    const struct weir_limit *l = &plan->limit;

    if (a == &weir__gcra || a == &weir__token_bucket || a == &weir__leaky_bucket)
        return plan->by_scale.by < EXACT_MAX / 1000 ? 'm' : 0;
    if (l->count > EXACT_MAX || !is_whole(l->period) || l->period > EXACT_MAX)
        return 0;
    if (a == &weir__fixed_window)
        return 'w';
    if (a == &weir__calendar)
        return 'c';
    if (a == &weir__sliding_window)
        return plan->ring <= RING_MAX && plan->by_bucket.by >= WIDTH_LEAST &&
                       (is_whole((weir_time)plan->by_bucket.by) || plan->by_bucket.by < WIDTH_MAX)
                   ? 's'
                   : 0;
    return a == &weir__sliding_log && plan->stamp_size <= STAMP_MAX ? 'l' : 0;
}

static bool is_queue(const struct weir_plan *plan)
{
    return plan->algo == &weir__leaky_bucket && plan->limit.queue != 0;
}

static int64_t cut(int64_t n)
{
    return n > EXACT_MAX ? EXACT_MAX : n;
}

/* Whether a script can decide on it.  The moment of use, which a receipt has, scripts leave to us.
 */
static bool is_scripted(const struct weir__account_call *call, const struct weir__account_item *it)
{
    int64_t most = call->verb == WEIR__ACCOUNT_GIVE ? EXACT_MAX : cut(it->plan->most);

    return kind_of(it->plan) != 0 && it->ask.cost > 0 && it->ask.cost <= most &&
           !(call->id.len > 0 && (it->ask.wait_max > 0 || is_queue(it->plan))) &&
           !(weir__account_has_demand(call) && weir__account_is_split(it->plan)) &&
           !(call->verb == WEIR__ACCOUNT_REPAY && it->plan->algo == &weir__sliding_log);
}

/* The usual ask: a script of its own. */
static bool is_usual(const struct weir__account_call *call, const struct weir__account_item *it)
{
    char kind = kind_of(it->plan);
    bool meter = kind == 'm' && !weir__account_is_split(it->plan) && !is_queue(it->plan);

    return call->n == 1 && call->verb == WEIR__ACCOUNT_TAKE && it->ask.wait_max == 0 &&
           call->id.len == 0 &&
           (meter || kind == 'l' || ((kind == 'w' || kind == 'c') && it->ask.cost <= UINT32_MAX));
}

/* ----------------------------------------------------- calendar windows ---- */

/* Ends of windows in us, from that of the last one on: Redis's clock may be behind. */
static size_t calendar_ends(const struct weir__account_call *call, const struct weir_plan *plan,
                            int64_t ends[ENDS])
{
    weir_time start, at = call->near;
    size_t n = 0;

    for (int i = 0; i < ENDS - 1; i++) {
        weir_time length = weir__calendar_window(plan, at, &start);
        if (i == 0 && start > 0)
            ends[n++] = start / WEIR_MICROSECOND;
        at = start + length;
        ends[n++] = at / WEIR_MICROSECOND;
    }
    return n;
}

static int64_t calendar_far(const struct weir_plan *plan)
{
    return (2 * weir__calendar_longest(plan) + WEIR__LATE_MAX) / WEIR_MICROSECOND;
}

/* -------------------------------------------------------------- numbers ---- */

struct numbers {
    unsigned char bytes[NUMBERS_MAX * 8 + FORMAT_MAX + WEIR__ACCOUNT_HEAD_MAX];
    size_t len;
};

static void add(struct numbers *to, int64_t n)
{
    uint64_t word = htole64((uint64_t)n);

    memcpy(to->bytes + to->len, &word, sizeof(word));
    to->len += sizeof(word);
}

/* In fewer bytes: an argument of at most 44 is cheaper for Redis. */
static void add_short(struct numbers *to, int64_t n, size_t size)
{
    add(to, n);
    to->len -= sizeof(n) - size;
}

/* Parts as whole microseconds and the rest. */
static void add_pair(struct numbers *to, const struct weir_plan *plan, weir__i128 parts)
{
    int64_t rate = weir__account_rate(plan);
    weir__i128 whole = parts / rate;

    add(to, whole > EXACT_MAX ? EXACT_MAX : (int64_t)whole);
    add(to, whole > EXACT_MAX ? 0 : (int64_t)(parts % rate));
}

static void meter_numbers(const struct weir__account_item *it, struct numbers *to)
{
    const struct weir_plan *plan = it->plan;
    weir__i128 wait = (weir__i128)it->ask.wait_max * (int64_t)plan->by_scale.by;
    weir__i128 free = (weir__i128)EXACT_MAX * weir__account_rate(plan);

    add(to, weir__account_rate(plan));
    add(to, weir__account_is_split(plan));
    add_pair(to, plan, (weir__i128)it->ask.cost * plan->price);
    add_pair(to, plan, is_queue(plan) ? plan->credit_free + wait : free);
    add_pair(to, plan, is_queue(plan) ? plan->capacity : plan->capacity + wait);
    add(to, cut(plan->price));
    add(to, cut(plan->capacity));
}

static void window_numbers(const struct weir__account_call *call, const struct weir_plan *plan,
                           struct numbers *to)
{
    const struct weir_limit *l = &plan->limit;
    int64_t ends[ENDS];

    add(to, l->count);
    if (plan->algo == &weir__fixed_window) {
        add(to, l->period / WEIR_MICROSECOND);
        add(to, l->align_first);
        return;
    }
    add(to, 0);
    add(to, calendar_far(plan));
    size_t n = calendar_ends(call, plan, ends);
    for (size_t i = 0; i < n; i++)
        add(to, ends[i]);
}

/* As window.lua has them, behind the head. */
static void usual_ends(const struct weir__account_call *call, const struct weir_plan *plan,
                       struct numbers *to)
{
    int64_t ends[ENDS];

    if (plan->algo == &weir__fixed_window) {
        add_short(to, plan->limit.align_first, 1);
        return;
    }
    add(to, calendar_far(plan));
    size_t n = calendar_ends(call, plan, ends);
    for (size_t i = 0; i < n; i++)
        add(to, ends[i]);
}

static int64_t life_of(weir_time span)
{
    return span / WEIR_MILLISECOND + 2;
}

static void sliding_numbers(const struct weir_plan *plan, struct numbers *to)
{
    const struct weir_limit *l = &plan->limit;
    int64_t width = (int64_t)plan->by_bucket.by, whole = is_whole(width);

    add(to, l->count);
    if (plan->algo == &weir__sliding_log) {
        add(to, l->period / WEIR_MICROSECOND);
        add(to, plan->stamp_size);
        add(to, life_of(l->period));
        return;
    }
    add(to, plan->ring);
    add(to, whole ? width / WEIR_MICROSECOND : width);
    add(to, whole ? 1 : WEIR_MICROSECOND);
    add(to, l->loose ? 0 : l->period / WEIR_MICROSECOND);
    add(to, life_of(l->period + width));
}

/* ---------------------------------------------------------------- words ---- */

static void add_bytes(struct numbers *to, const void *bytes, size_t len)
{
    memcpy(to->bytes + to->len, bytes, len);
    to->len += len;
}

/* Where in the account the part is that changes, in digits; the account's format, which a script
 * takes it apart by; each ended by NUL.  The head, behind its length.  Eight bytes and one are read
 * faster than seven and two.  The eighth is the lower byte of the nanoseconds, which these scripts
 * do not know: any makes the time absurd. */
static void add_head(struct numbers *to, const struct weir__account_head *head, size_t place)
{
    char text[FORMAT_MAX];
    int len = snprintf(text, sizeof(text), "%zu%c<c%zuI8Bi8%c%c", place, 0, head->len, 0,
                       (char)head->len);

    add_bytes(to, text, (size_t)len);
    add_bytes(to, head->bytes, head->len);
}

static void meter_words(struct weir__account_call *call, const struct weir__account_head *head)
{
    const struct weir__account_item *it = &call->items[0];
    const struct weir_plan *plan = it->plan;
    struct numbers numbers = { .len = 0 };

    weir__script_keys(call, WEIR__SCRIPT_METER);
    add_short(&numbers, it->ask.cost * plan->price, 7);
    add_short(&numbers, plan->capacity, 7);
    add_short(&numbers, weir__account_rate(plan), 7);
    add_head(&numbers, head, head->len);
    weir__script_word(call, numbers.bytes, numbers.len);
}

static void window_words(struct weir__account_call *call, const struct weir__account_head *head)
{
    const struct weir__account_item *it = &call->items[0];
    const struct weir_limit *l = &it->plan->limit;
    struct numbers numbers = { .len = 0 };

    weir__script_keys(call, WEIR__SCRIPT_WINDOW);
    add_short(&numbers, it->ask.cost, 4);
    add_short(&numbers, l->count, 7);
    add_short(&numbers, l->period / WEIR_MICROSECOND, 7); /* 0: by the calendar */
    add_head(&numbers, head, head->len + TIME_SIZE);
    usual_ends(call, it->plan, &numbers);
    weir__script_word(call, numbers.bytes, numbers.len);
}

static void log_words(struct weir__account_call *call, const struct weir__account_head *head)
{
    const struct weir__account_item *it = &call->items[0];
    struct numbers numbers = { .len = 0 };

    weir__script_keys(call, WEIR__SCRIPT_SLIDING_LOG);
    add(&numbers, it->ask.cost);
    sliding_numbers(it->plan, &numbers);
    weir__script_word(call, head->bytes, head->len);
    weir__script_word(call, numbers.bytes, numbers.len);
    weir__script_number(call, life_of(it->plan->limit.period));
}

static void usual_words(struct weir__account_call *call)
{
    const struct weir_plan *plan = call->items[0].plan;
    struct weir__account_head head = weir__account_head(plan);
    char kind = kind_of(plan);

    if (kind == 'm')
        meter_words(call, &head);
    else if (kind == 'l')
        log_words(call, &head);
    else
        window_words(call, &head);
}

static void item_words(struct weir__account_call *call, const struct weir__account_item *it)
{
    struct weir__account_head head = weir__account_head(it->plan);
    struct numbers numbers = { .len = 0 };
    char kind = kind_of(it->plan);

    add(&numbers, it->ask.cost);
    if (kind == 'm')
        meter_numbers(it, &numbers);
    else if (kind == 'w' || kind == 'c')
        window_numbers(call, it->plan, &numbers);
    else
        sliding_numbers(it->plan, &numbers);
    weir__script_word(call, &kind, 1);
    weir__script_word(call, head.bytes, head.len);
    weir__script_word(call, numbers.bytes, numbers.len);
}

static void demand_numbers(const struct weir_plan *plan, const struct weir__draw_terms *terms,
                           struct numbers *to)
{
    add(to, weir__is_meter(plan) ? terms->life / WEIR_MICROSECOND : 0);
    add(to, weir__demand_life(terms));
}

static void draw_word(struct weir__account_call *call)
{
    const struct weir_plan *plan = call->items[0].plan;
    struct weir__draw_terms terms = call->terms ? *call->terms : weir__draw_terms(plan);
    struct weir__draw_numbers n = weir__draw_numbers(&terms, &call->draw);
    struct numbers numbers = { .len = 0 };

    add(&numbers, n.waiting);
    add(&numbers, n.have);
    add(&numbers, n.asked);
    add(&numbers, n.fast);
    add(&numbers, n.ahead);
    add(&numbers, n.epoch);
    add(&numbers, n.refill);
    add(&numbers, n.of_left);
    add(&numbers, n.least_left);
    demand_numbers(plan, &terms, &numbers);
    weir__script_word(call, numbers.bytes, numbers.len);
}

static void repay_word(struct weir__account_call *call)
{
    const struct weir_plan *plan = call->items[0].plan;
    struct weir__draw_terms terms = weir__draw_terms(plan);
    struct numbers numbers = { .len = 0 };
    weir_time start, end = 0, at = call->drawn_at < 0 ? 0 : call->drawn_at;

    if (plan->algo == &weir__calendar) {
        end = weir__calendar_window(plan, at, &start);
        end += start;
    }
    add(&numbers, at / WEIR_MICROSECOND);
    add(&numbers, end / WEIR_MICROSECOND);
    demand_numbers(plan, &terms, &numbers);
    weir__script_word(call, numbers.bytes, numbers.len);
}

static void decide_words(struct weir__account_call *call)
{
    static const char *const verbs[] = { "take", "peek", "give", "draw", "back" };

    weir__script_keys(call, WEIR__SCRIPT_DECIDE);
    weir__script_word(call, verbs[call->verb], 4);
    weir__script_number(call, call->id.len == 0 ? 0 : weir__receipt_keep(call->keep));
    for (size_t i = 0; i < call->n; i++)
        item_words(call, &call->items[i]);
    if (call->verb == WEIR__ACCOUNT_DRAW)
        draw_word(call);
    else if (call->verb == WEIR__ACCOUNT_REPAY)
        repay_word(call);
}

void weir__script_begin(struct weir__account_call *call)
{
    bool scripted = call->verb != WEIR__ACCOUNT_PEEK;

    call->repeated = false;
    call->draw.need = call->items[0].ask.cost;
    if (call->verb == WEIR__ACCOUNT_PEEK || call->verb == WEIR__ACCOUNT_RESET)
        call->id.len = 0; /* harmless as they are */
    if (call->verb == WEIR__ACCOUNT_RESET) {
        weir__script_keys(call, WEIR__SCRIPT_RESET);
        return;
    }
    for (size_t i = 0; i < call->n; i++)
        scripted = scripted && is_scripted(call, &call->items[i]);
    if (!scripted)
        weir__script_keys(call, WEIR__SCRIPT_READ);
    else if (is_usual(call, &call->items[0]))
        usual_words(call);
    else
        decide_words(call);
}
