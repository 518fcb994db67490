/* fleet-share.c -- Redis is away: nodes go by their shares, and back. */
#include "unit/test.h"

#include "sim/fleet-laws.h"
#include "sim/fleet-parts.h"

static struct story outage(const char *limit, int nodes, double rate, bool share)
{
    struct story s = { .seed = 1,
                       .share = share,
                       .together = true,
                       .nodes = nodes,
                       .n_limits = 1,
                       .keys = 1,
                       .limits = { limit },
                       .length = 20 * S,
                       .trip = 250 * US,
                       .patience = 50 * MS,
                       .command = 5 * US };

    random_state = 1;
    for (int n = 0; n < nodes; n++)
        add_asks(&s, n, 2 * rate / nodes, 0, s.length,
                 (struct event){ .kind = EVENT_ASK, .limits = 1, .n = 1 });
    *add_event(&s) = (struct event){ .at = 5 * S, .kind = EVENT_STOP, .span = 5 * S };
    put_in_order(&s);
    return s;
}

static int64_t between_seconds(const struct outcome *o, int node, weir_time from, weir_time to)
{
    return passed_between(&o->accounts[0][0], node, from, to);
}

/* 100/s over two nodes, and Redis is killed: 50/s each within a second, 100/s together after it
 * returns, never more than the limit. */
TEST(test_nodes_go_by_their_shares)
{
    static const struct {
        const char *limit;
        int nodes;
        double rate;
    } rows[] = { { "token-bucket 100/1s", 2, 100 },
                 { "gcra 1000/1s burst 1000", 4, 1000 },
                 { "gcra 1000/1s burst 100", 5, 1000 } };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct story s = outage(rows[i].limit, rows[i].nodes, rows[i].rate, true);
        const struct outcome *o = fleet_run(&s);
        assert_null(law_broken(&s, o));
        for (weir_time at = 4 * S; at < 14 * S; at += S / 2)
            print_message("%s%d", at == 4 * S ? "" : " ",
                          (int)between_seconds(o, -1, at, at + S / 2));
        print_message("  %s, %d nodes\n", rows[i].limit, rows[i].nodes);
        for (int n = 0; n < s.nodes; n++) {
            double part = (double)between_seconds(o, n, 6 * S, 10 * S) * s.nodes / rows[i].rate / 4;
            assert_true(part >= 0.97 && part <= 1.03);
        }
        double after = (double)between_seconds(o, -1, 10 * S, 15 * S) / rows[i].rate / 5;
        print_message("after: %.3f\n", after);
        assert_true(after >= 0.97 && after <= 1.03);
    }
}

/* One of four nodes has nearly all of the demand, which is less than the limit.  By equal parts it
 * has a quarter while Redis is away; by demand the others lend it what they do not need, and lack
 * nothing themselves. */
TEST(test_D4_parts_follow_demand)
{
    for (int lend = 0; lend <= 1; lend++) {
        struct story s = outage("gcra 1000/1s burst 1000", 4, 0.01, true);
        s.lend = lend;
        s.n = 0;
        s.length = 70 * S;
        random_state = 1;
        for (int n = 0; n < s.nodes; n++)
            add_asks(&s, n, n == 0 ? 700 : 30, 0, s.length,
                     (struct event){ .kind = EVENT_ASK, .limits = 1, .n = 1 });
        *add_event(&s) = (struct event){ .at = 60 * S, .kind = EVENT_STOP, .span = 5 * S };
        put_in_order(&s);
        const struct outcome *o = fleet_run(&s);
        assert_null(law_broken(&s, o));
        print_message("%s:", lend ? "by demand" : "equal");
        for (int n = 0; n < s.nodes; n++) {
            int64_t units = between_seconds(o, n, 61 * S, 65 * S);
            print_message(" %d/s of %d (part %.3f)", (int)(units / 4), n == 0 ? 700 : 30,
                          o->part[n] / 1e6);
            assert_true(n > 0 ? units >= 4 * 25 : units >= 4 * (lend ? 600 : 240));
            assert_true(n > 0 || lend || units <= 4 * 260);
        }
        print_message("\n");
    }
}

/* How long all parts differ after a node has begun, idle as the others are. */
static weir_time time_until_equal(int nodes)
{
    static struct parts parts;
    weir_time begun = 100 * S, unequal = 0;

    parts = (struct parts){ 0 };
    for (weir_time at = S; at < begun + 60 * S; at += WEIR__MEMBER_BEAT)
        for (int n = at < begun ? 1 : 0; n < nodes; n++) {
            assert_true(parts_beat(&parts, n, 0, at));
            int64_t part = weir__member_part(&parts.of[n].member, at);
            if (at >= begun && part != WEIR__PART_ONE / nodes)
                unequal = at - begun;
        }
    return unequal;
}

TEST(test_D4_parts_are_equal_after_ten_seconds_for_each_doubling)
{
    for (int nodes = 2, doublings = 1; nodes <= 9; nodes++) {
        doublings += nodes > 1 << doublings;
        weir_time took = time_until_equal(nodes);
        print_message("%d nodes: %.1f s\n", nodes, (double)took / 1e9);
        assert_true(took > doublings * 10 * S - S && took < doublings * 10 * S + S);
    }
}

TEST(test_closed_passes_nothing)
{
    struct story s = outage("token-bucket 100/1s", 2, 100, false);
    const struct outcome *o = fleet_run(&s);

    assert_null(law_broken(&s, o));
    assert_int_equal(between_seconds(o, -1, 6 * S, 10 * S), 0);
    assert_true(between_seconds(o, -1, 11 * S, 16 * S) >= 495);
}

/* A node's windows are those of its own clock, an hour off here; so they are exact for each
 * node, and together nearly. */
TEST(test_windows_go_by_their_shares)
{
    for (int nodes = 2; nodes <= 8; nodes *= 2) {
        struct story s = outage("fixed-window 400/1s", nodes, 400, true);
        const struct outcome *o = fleet_run(&s);
        for (weir_time at = 0; at < s.length; at += S) {
            int64_t units = between_seconds(o, -1, at, at + S);
            print_message("%d ", (int)units);
            assert_true(units <= 440);
            assert_true((at >= 5 * S && at < 12 * S) || units == 400);
        }
        print_message("\n");
    }
}
