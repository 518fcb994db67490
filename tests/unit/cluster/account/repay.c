/* repay.c -- paying back: nobody gains by it, and what was drawn in vain is not lost. */
#include "unit/test.h"

#include "algo/debt.h"
#include "cluster/account/draw-size.h"
#include "random.h"
#include "unit/fixture.h"

#define MS    WEIR_MILLISECOND
#define US    WEIR_MICROSECOND
#define LOTS  16
#define MANY  100000
#define START (1000000 * S)

/* An account, and the units that nodes have drawn from it and not yet spent. */
static struct weir_plan plan;
static struct weir__draw_terms terms;
static _Alignas(8) unsigned char account[65536];
static struct weir__demand demand;
static weir_time now;
static struct lot {
    int64_t units;
    weir_time at, until;
    size_t from; /* the first moment after its draw */
} lots[LOTS];

/* Moments of a meter: what it owed then, and how much of that was paid back since. */
static struct moment {
    int64_t owed, back;
} moments[MANY];
static size_t moment_count;
static bool takes; /* asks go to the account too, past the nodes */

/* What was spent: in a bucket of the bound, burst + r life; and when, for windows. */
static weir__i128 level, level_most;
static weir_time level_at;
static weir_time spent[MANY];
static size_t spent_count;

static void open_account(const char *text)
{
    struct weir_limit limit = limit_of(text);

    assert_int_equal(weir__plan_make(&plan, &limit, NULL), WEIR_OK);
    assert_true(plan.state_size <= sizeof(account));
    terms = weir__draw_terms(&plan);
    memset(account, 0, sizeof(account));
    memset(lots, 0, sizeof(lots));
    demand = (struct weir__demand){ 0 };
    now = level_at = START;
    level = level_most = 0;
    spent_count = moment_count = 0;
}

static int64_t owed(void)
{
    struct weir__debt copy;

    memcpy(&copy, account, sizeof(copy));
    weir__debt_reckon(&plan, &copy, now, 0);
    return copy.owed;
}

static void keep_moment(void)
{
    if (!terms.window && moment_count < MANY)
        moments[moment_count++] = (struct moment){ owed(), 0 };
}

static struct weir__drawn draw(int64_t units)
{
    struct weir_decision d;
    struct weir__draw what = { .need = units, .waiting = units };

    return weir__draw_units(&plan, account, &demand, &what, now, &d);
}

static int64_t repay(int64_t units, weir_time at)
{
    return weir__draw_repay(&plan, account, &demand, &(struct weir__repay){ units, at }, now);
}

static int64_t remaining(void)
{
    struct weir_decision d;

    weir_step_peek(&plan, account, &(struct weir_ask){ .now = now }, &d);
    return d.remaining;
}

static void draw_lot(struct lot *lot, int64_t units)
{
    keep_moment();
    struct weir__drawn drawn = draw(units);

    *lot = (struct lot){ drawn.units, drawn.at, drawn.at + drawn.life, moment_count };
    keep_moment();
}

/* Why nobody gains: of units drawn before a moment, no more count again than were owed then. */
static void repay_lot(struct lot *lot, int64_t units)
{
    int64_t before = owed();

    assert_in_range(repay(units, lot->at), 0, units);
    for (size_t i = lot->from; i < moment_count && !terms.window && !takes; i++) {
        moments[i].back += before - owed();
        assert_true(moments[i].back <= moments[i].owed);
    }
    lot->units -= units;
    keep_moment();
}

/* ----------------------------------------------------------- the bounds ---- */

static void spend_meter(int64_t units)
{
    weir__i128 scale = (weir__i128)plan.by_scale.by;

    level -= (now - level_at) * scale;
    level = (level < 0 ? 0 : level) + (weir__i128)units * plan.price;
    level_at = now;
    level_most = level > level_most ? level : level_most;
}

static void spend_window(int64_t units)
{
    size_t from = spent_count;

    for (int64_t i = 0; i < units && spent_count < MANY; i++)
        spent[spent_count++] = now;
    if (plan.algo == &weir__fixed_window)
        while (from > 0 && spent[from - 1] / plan.limit.period == now / plan.limit.period)
            from--;
    else
        while (from > 0 && spent[from - 1] > now - plan.limit.period)
            from--;
    assert_true(spent_count - from <= (size_t)plan.limit.count);
}

static void spend(struct lot *lot, int64_t units)
{
    lot->units -= units;
    if (terms.window)
        spend_window(units);
    else
        spend_meter(units);
}

static void take_past_nodes(int64_t units)
{
    struct weir_decision d;

    if (weir_step(&plan, account, &(struct weir_ask){ .now = now, .cost = units }, &d))
        spend(&(struct lot){ .units = units }, units);
}

/* Something that a node may do: draw, spend, pay back, at any time while its units live; and pay
 * back later. */
static void act(void)
{
    struct lot *lot = &lots[between(0, LOTS - 1)];
    int64_t what = between(0, 5);

    if (lot->until <= now && lot->units > 0 && one_in(2)) {
        repay_lot(lot, lot->units);
    } else if (lot->until <= now || lot->units == 0) {
        draw_lot(lot, between(1, one_in(3) ? plan.most : 5));
        if (plan.algo == &weir__sliding_log) /* what is not needed now will be paid back */
            spend(lot, between(0, lot->units));
    } else if (what == 0 && plan.algo != &weir__sliding_log) {
        spend(lot, between(1, lot->units));
    } else if (what == 1) {
        repay_lot(lot, between(1, lot->units));
    }
}

/* Lots of that age are paid back and drawn again, so that they live on; and what is free. */
static void renew(weir_time age)
{
    for (int i = 0; i < LOTS; i++) {
        struct lot *lot = &lots[i];
        bool lives = lot->units > 0 && lot->until > now;
        if (lives && now - lot->at < age)
            continue;
        if (lives)
            repay_lot(lot, lot->units);
        draw_lot(lot, remaining() > 0 ? remaining() : 1);
    }
}

static void spend_all(void)
{
    for (int i = 0; i < LOTS && plan.algo != &weir__sliding_log; i++)
        if (lots[i].units > 0 && lots[i].until > now)
            spend(&lots[i], lots[i].units);
}

/* Each walk has its own habits: how often something happens, how old lots become, how rarely all
 * is spent at once. */
static void walk(const char *limit)
{
    open_account(limit);
    weir_time step = terms.life / US / between(2, 40), age = between(0, 100) * terms.life / 100;
    int64_t acts = between(0, 20), spends = between(10, 200);

    for (int i = 0; i < 1000; i++) {
        now += between(0, step) * US;
        if (one_in(100)) /* nobody asks for a while */
            now += between(0, 8) * terms.life;
        if (takes && one_in(3))
            take_past_nodes(one_in(3) ? remaining() : 1);
        else if (one_in(spends))
            spend_all();
        else if (between(1, 20) > acts)
            renew(age);
        else
            act();
    }
}

static void walk_all(int lives)
{
    static const char *const limits[] = {
        "gcra 1000/1s burst 200",         "token-bucket 7/1s burst 3",
        "leaky-bucket 1000000/1s",        "gcra 100/1s burst 1000",
        "token-bucket 3/777us burst 9",   "fixed-window 100/1s",
        "sliding-window 100/1s",          "sliding-log 50/1s",
        "sliding-window 40/10s buckets=3"
    };

    for (uint64_t seed = 1; seed <= 40; seed++) {
        for (size_t i = 0; i < COUNT_OF(limits); i++) {
            random_state = seed * 1000 + i;
            walk(limits[i]);
            assert_true(level_most <=
                        plan.capacity + lives * terms.life * (weir__i128)plan.by_scale.by);
        }
    }
}

TEST(test_D1_paying_back_gains_nothing)
{
    takes = false;
    walk_all(1);
}

/* A take may hide that the key owed less before it: less by as much as drains in two epochs. */
TEST(test_D1_paying_back_among_takes)
{
    takes = true;
    walk_all(3);
    takes = false;
}

/* Hold, pay back at the end of life, draw again: without the rule this held 2,022 units. */
TEST(test_D1_units_do_not_live_on)
{
    open_account("gcra 1000/1s burst 160");
    for (int i = 0; i < 500; i++) {
        now += terms.life / 4;
        renew(terms.life / 2);
    }
    int64_t held = 0;
    for (int i = 0; i < LOTS; i++)
        held += lots[i].until > now ? lots[i].units : 0;
    assert_in_range(held, 1, 200); /* b + r life */
    spend_all();
}

/* -------------------------------------------------------- what it is for ---- */

/* Drawn in vain and paid back at once: as if it had never been drawn. */
TEST(test_D1_paid_back_at_once)
{
    static const char *const limits[] = { "gcra 10/1s burst 5",
                                          "5/1m",
                                          "fixed-window 5/1m",
                                          "sliding-window 5/1m",
                                          "sliding-log 5/1m",
                                          "5/day",
                                          "leaky-bucket 9/1s burst 5 queue 4" };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        print_message("%s\n", limits[i]);
        open_account(limits[i]);
        for (int k = 0; k < 9; k++) {
            int64_t before = remaining();
            struct weir__drawn drawn = draw(3);
            assert_int_equal(drawn.units, 3);
            now += 500 * US;
            assert_int_equal(repay(3, drawn.at), 3);
            assert_int_equal(remaining(), before);
            now += 20 * S;
        }
    }
}

/* A key that owes much all the time: whatever is paid back counts. */
TEST(test_D1_paid_back_to_a_busy_key)
{
    struct weir__drawn kept = { 0 };

    open_account("gcra 1000/1s burst 1000");
    draw(800);
    for (int i = 0; i < 50; i++) {
        if (i == 49)
            kept = draw(50);
        now += 10 * MS;
        draw(10);
    }
    now += terms.life - 20 * MS;
    int64_t before = remaining();
    assert_int_equal(repay(50, kept.at), 50);
    assert_int_equal(remaining(), before + 50);
}

TEST(test_D1_paid_back_to_its_own_window)
{
    static const char *const limits[] = { "fixed-window 10/10s", "10/day",
                                          "fixed-window 10/10s align=first" };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        open_account(limits[i]);
        struct weir__drawn drawn = draw(4);
        now += 1 * S;
        assert_int_equal(repay(1, drawn.at), 1);
        assert_int_equal(remaining(), 7);
        now += i == 1 ? 86400 * S : 10 * S;
        assert_int_equal(repay(3, drawn.at), 0);
        draw(5);
        assert_int_equal(repay(3, drawn.at), 0); /* those are others */
        assert_int_equal(remaining(), 5);
    }
}

TEST(test_D1_paid_back_to_its_own_lot)
{
    struct weir_decision d;
    struct weir_ask need = { .cost = 10 };

    open_account("sliding-log 10/10s");
    weir_time early = draw(4).at;
    now += 3 * S;
    draw(6);
    assert_int_equal(repay(4, early + 1 * US), 0);
    assert_int_equal(repay(9, early), 4);
    need.now = now;
    assert_false(weir_step_peek(&plan, account, &need, &d));
    assert_int_equal(d.retry, 10 * S); /* the later ones are still there */

    open_account("sliding-window 10/10s");
    early = draw(4).at;
    now += 3 * S;
    draw(6);
    assert_int_equal(repay(9, early), 4);
    assert_int_equal(remaining(), 4);
    now += 8 * S;
    assert_int_equal(remaining(), 4);
    assert_int_equal(repay(9, early), 0);
}

/* A node that stood still: its units were paid off while nobody drew, and the key is busy only
 * since. */
TEST(test_D1_paid_back_long_after_their_life)
{
    open_account("gcra 1000/1s burst 1000");
    struct weir__drawn kept = draw(800);
    now += 60 * S;
    draw(1000);
    for (weir_time until = now + 3 * terms.life; now < until; now += 10 * MS)
        draw(10);
    int64_t before = remaining();
    assert_int_equal(repay(800, kept.at), 0);
    assert_int_equal(remaining(), before);
}

/* Nothing that makes no sense counts. */
TEST(test_D1_odd_payments)
{
    open_account("gcra 10/1s burst 10");
    struct weir__drawn drawn = draw(5);
    assert_int_equal(repay(0, drawn.at), 0);
    assert_int_equal(repay(-5, drawn.at), 0);
    assert_int_equal(repay(5, drawn.at + 1 * US), 0); /* not drawn yet */
    assert_int_equal(repay(5, -1), 0);
    assert_int_equal(repay(INT64_MAX, drawn.at), 5); /* never more than is owed */
    assert_int_equal(remaining(), 10);
    assert_int_equal(repay(5, drawn.at), 0); /* twice */
    drawn = draw(10);
    now += terms.life + 1 * US;
    assert_int_equal(repay(5, drawn.at), 0); /* too late: they were not to be spent any more */

    open_account("smooth 10/1s burst 10");
    drawn = draw(5);
    int64_t before = remaining();
    assert_int_equal(repay(5, drawn.at), 0);
    assert_int_equal(remaining(), before);
}
