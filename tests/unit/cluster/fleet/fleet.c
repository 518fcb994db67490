/* fleet.c -- a node of a fleet, event by event: what it sends, and what asks get. */
#include "unit/test.h"

#include "unit/fleet-node.h"

TEST(test_a_dry_purse_draws_for_the_ask)
{
    struct weir__fleet_wait a, b;

    begin(16, 0);
    wait_of(&a, 3, 0, NOW);
    wait_of(&b, 4, 0, NOW); /* behind it; the draw is under way */
    assert_int_equal(sent.draws, 1);
    assert_fields(sent.draw, (need, 3), (waiting, 3), (have, 0), (asked, 3));
    answer(0, 3, false, NOW + MS);
    assert_true(a.over && a.outcome == WEIR__FLEET_TOOK && !b.over);
    assert_int_equal(sent.draws, 2);
    assert_fields(sent.draw, (need, 4), (waiting, 4), (asked, 4));
    answer(0, 0, true, NOW + 2 * MS);
    assert_true(b.over && b.outcome == WEIR__FLEET_REFUSED && b.retry > 0);
    wait_of(&b, 1, 0, NOW + 3 * MS); /* refused at once, and nothing is sent */
    assert_true(b.over && b.outcome == WEIR__FLEET_REFUSED);
    assert_int_equal(sent.draws, 2);
    end();
}

TEST(test_D3_a_reset_drops_units_drawn_before_and_opens_the_purse)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    wait_of(&a, 3, 0, NOW);
    answer(0, 10, false, NOW + MS); /* 7 are left, drawn then */
    weir__fleet_reset(fleet, key(0), NOW + MS, NOW + 2 * MS);
    assert_int_equal(have(NULL, key(0), NOW + 2 * MS), 7);
    weir__fleet_reset(fleet, key(0), NOW + 2 * MS, NOW + 2 * MS);
    assert_int_equal(have(NULL, key(0), NOW + 2 * MS), 0);
    assert_int_equal(sent.repaid, 0);
    wait_of(&a, 1, 0, NOW + 3 * MS);
    answer(0, 0, true, NOW + 3 * MS);
    assert_true(a.over && a.outcome == WEIR__FLEET_REFUSED);
    weir__fleet_reset(fleet, key(0), NOW + 4 * MS, NOW + 4 * MS);
    int draws = sent.draws;
    wait_of(&a, 1, 0, NOW + 5 * MS);
    assert_true(!a.over && sent.draws == draws + 1);
    answer(0, 1, false, NOW + 6 * MS);
    assert_true(a.over && a.outcome == WEIR__FLEET_TOOK);
    end();
}

TEST(test_a_lost_draw_is_sent_again_under_its_id)
{
    struct weir__fleet_wait a, b;

    begin(16, 0);
    wait_of(&a, 1, 0, NOW);
    uint64_t id = sent.id;
    wait_of(&b, 0, 1, NOW);
    answer(1, 1, false, NOW + MS); /* the shard is there */
    weir__fleet_turn(fleet, NOW + 19 * MS);
    assert_int_equal(sent.draws, 2);
    weir__fleet_turn(fleet, NOW + 20 * MS);
    assert_true(sent.draws == 3 && sent.id == id);
    weir__fleet_drawn(fleet, key(0), id + 1, &(struct weir__fleet_answer){ 0 }, NOW); /* foreign */
    assert_false(a.over);
    answer(0, 1, false, NOW + 21 * MS);
    assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
    answer(0, 1, false, NOW + 22 * MS); /* the other answer comes too: ignored */
    assert_int_equal(have(NULL, key(0), NOW + 22 * MS), 0);
    end();
}

/* The shard answers others: a draw that was lost, again and again, is not left for seconds. */
TEST(test_a_lost_draw_is_sent_again_soon)
{
    struct weir__fleet_wait a, b;

    begin(16, 0);
    wait_of(&a, 1, 0, NOW);
    wait_of(&b, 0, 1, NOW);
    weir__fleet_turn(fleet, NOW + 100 * MS);
    answer(1, 1, false, NOW + 150 * MS); /* a long way, as it seems */
    for (weir_time now = NOW + 100 * MS; key(0)->drawing;) {
        weir_time next = weir__fleet_turn(fleet, now);
        assert_true(!key(0)->drawing || next - now <= 200 * MS);
        now = next;
    }
    assert_int_equal(a.outcome, WEIR__FLEET_ALONE);
    end();
}

/* Redis answers draws with an error: not one for each ask, let alone one after another. */
TEST(test_a_draw_that_is_refused_waits_longer_each_time)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    for (weir_time now = NOW; now < NOW + 20 * WEIR_SECOND; now += MS) {
        wait_of(&a, 1, 0, now);
        weir__fleet_denied(fleet, key(0), sent.id, now);
        assert_true(a.over && a.outcome == WEIR__FLEET_ALONE);
    }
    assert_in_range(sent.draws, 10, 20);
    assert_int_equal(sent.charges, 0); /* it would be refused too, and lost */
    end();
}

/* The limit is no more: its asks are left alone, its units go back, and its records are free. */
TEST(test_a_limit_that_goes)
{
    struct weir__fleet_wait a, b;

    begin(2, 0);
    wait_of(&a, 1, 0, NOW);
    answer(0, 10, false, NOW + MS);
    wait_of(&a, 20, 0, NOW + MS);
    wait_of(&b, 0, 1, NOW + MS);
    weir__fleet_drop(fleet, key(0), NOW + 2 * MS);
    assert_true(a.over && a.outcome == WEIR__FLEET_ALONE && !b.over);
    assert_int_equal(sent.repaid, 9);
    assert_null(weir__fleet_key_find(fleet, &limits[0], key_of("ann")));
    assert_non_null(weir__fleet_key_find(fleet, &limits[1], key_of("ann")));
    assert_non_null(weir__fleet_key(fleet, &limits[0], key_of("bob"), 0, NOW + 2 * MS));
    weir__fleet_turn(fleet, NOW + 10 * MS);
    end();
}

/* Beside another that draws ahead: only for its own asks, and what is in purses is not its own. */
TEST(test_one_that_stands_by)
{
    struct weir__fleet_wait a;

    begin(2, 0);
    weir__fleet_set_exact(fleet, true);
    for (int i = 0; i < 100; i++) {
        wait_of(&a, 1, 0, NOW + i * MS);
        assert_fields(sent.draw, (waiting, 1), (slow, 0));
        answer(0, 1, false, NOW + i * MS);
        weir__fleet_turn(fleet, NOW + i * MS);
    }
    assert_int_equal(sent.draws, 100);
    fill(NULL, key(0), 500, NOW + 100 * MS, NOW + 100 * MS);
    for (weir_time now = NOW + 100 * MS, due; now < NOW + 200 * MS; now = due)
        due = weir__fleet_turn(fleet, now);
    weir__fleet_end(fleet, NOW + 200 * MS);
    assert_fields(sent, (draws, 100), (repaid, 0));
    weir__fleet_destroy(fleet);
}

/* An ask may refer to a key that it does not wait on: it stays. */
TEST(test_no_key_of_an_ask_is_forgotten)
{
    begin(1, 0);
    struct weir__fleet_key *k = key(0);
    k->own.asks = 1;
    assert_null(weir__fleet_key(fleet, &limits[1], key_of("bob"), 0, NOW));
    k->own.asks = 0;
    assert_non_null(weir__fleet_key(fleet, &limits[1], key_of("bob"), 0, NOW));
    end();
}

/* Nobody answers for 200 ms: then asks are left alone at once, while a draw now and then finds out
 * whether somebody does; then the account is charged before the first draw. */
TEST(test_a_shard_goes_away_and_comes_back)
{
    struct weir__fleet_wait a, b;
    weir_time now = NOW;

    begin(16, 0);
    wait_of(&a, 1, 0, now);
    for (int i = 0; i < 5 && !a.over; i++) {
        assert_true(now < NOW + 400 * MS);
        weir__fleet_turn(fleet, now);
        assert_true(!a.over || now >= NOW + 200 * MS);
        now = a.over ? now : weir__fleet_turn(fleet, now);
    }
    assert_true(a.over && a.outcome == WEIR__FLEET_ALONE);
    wait_of(&b, 0, 1, now);
    assert_true(b.over && b.outcome == WEIR__FLEET_ALONE); /* another key there, too */
    int draws = sent.draws;
    wait_of(&b, 0, 1, now);
    assert_int_equal(sent.draws, draws);
    for (int i = 0; i < 60 && key(0)->drawing; i++)
        now = weir__fleet_turn(fleet, now);
    assert_true(weir__fleet_counts(fleet).given_up >= 1 && now >= NOW + 2 * S);
    wait_of(&a, 1, 0, now);
    assert_int_equal(a.outcome, WEIR__FLEET_ALONE);
    assert_true(key(0)->drawing); /* to find out */
    answer(0, 1, false, now += MS);
    assert_int_equal(sent.charges, 0);
    take_out(NULL, key(0), 1, now);
    draws = sent.draws;
    wait_of(&a, 1, 0, now);
    assert_int_equal(sent.charges, 1);
    assert_int_equal(sent.draws_before, draws);
    assert_int_equal(sent.draws, draws + 1);
    answer(0, 1, false, now += MS);
    assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
    wait_of(&a, 1, 0, now);
    assert_int_equal(sent.charges, 1); /* once */
    end();
}

/* By the last answer, and what time has given back since. */
TEST(test_D5_what_is_left_by_now)
{
    struct weir__fleet_wait w;
    weir_time then = NOW + MS;

    begin(16, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__fleet_left(key(i), NOW), -1); /* nobody knows */
        wait_of(&w, i == 0, i == 1, NOW);
        weir__fleet_drawn(fleet, key(i), key(i)->id,
                          &(struct weir__fleet_answer){
                              { 1, 1, false, NOW, 250 * MS }, .left = 400, .reset = 600 * MS },
                          then);
        assert_int_equal(weir__fleet_left(key(i), then), 400);
        assert_int_equal(weir__fleet_left(key(i), then - S), 400);
        assert_int_equal(weir__fleet_left(key(i), then + 600 * MS), -1); /* all of it */
    }
    assert_int_equal(weir__fleet_left(key(0), then + 300 * MS), 700);     /* a meter */
    assert_int_equal(weir__fleet_left(key(0), then + 300 * MS + 1), 700); /* whole units */
    assert_int_equal(weir__fleet_left(key(1), then + 599 * MS), 400);     /* a window */
    end();
}

/* The way takes longer than the patience: that is learnt, and then nothing is sent twice. */
TEST(test_a_long_way_is_learnt)
{
    struct weir__fleet_wait a;
    weir_time now = NOW;

    begin(16, 0);
    for (int i = 0; i < 4; i++, now += S) {
        wait_of(&a, 1, 0, now);
        weir__fleet_turn(fleet, now + 30 * MS);
        answer(0, 1, false, now + 35 * MS);
        take_out(NULL, key(0), 1, now + 35 * MS);
    }
    assert_int_equal(weir__fleet_counts(fleet).repeats, 1);
    assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
    end();
}

/* A Redis that comes and goes is as near as before: a lost draw is sent again as soon. */
TEST(test_D5_outages_are_no_long_way)
{
    struct weir__fleet_wait a;
    weir_time now = NOW;

    begin(16, 0);
    for (int i = 0; i < 8; i++, now += S) {
        wait_of(&a, 1, 0, now);
        weir__fleet_turn(fleet, now + 30 * MS);
        answer(0, 1, false, now + 900 * MS);
        take_out(NULL, key(0), 1, now + 900 * MS);
    }
    uint64_t repeats = weir__fleet_counts(fleet).repeats;
    wait_of(&a, 1, 0, now);
    weir__fleet_turn(fleet, now + 25 * MS);
    assert_int_equal(weir__fleet_counts(fleet).repeats, repeats + 1);
    end();
}

TEST(test_all_nodes_go_back_together)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    wait_of(&a, 1, 0, NOW);
    weir__fleet_stay_alone(fleet, 0, NOW + 10 * MS, NOW);
    assert_true(a.over && a.outcome == WEIR__FLEET_ALONE);
    answer(0, 1, true, NOW + MS);
    take_out(NULL, key(0), 1, NOW + MS);
    wait_of(&a, 1, 0, NOW + 9 * MS);
    assert_int_equal(a.outcome, WEIR__FLEET_ALONE);
    assert_int_equal(sent.draws, 1);
    end();
}

TEST(test_draws_under_way_are_bounded)
{
    struct weir__fleet_wait a, b;

    begin(16, 1);
    wait_of(&a, 1, 0, NOW);
    wait_of(&b, 0, 1, NOW);
    assert_true(b.over && b.outcome == WEIR__FLEET_ALONE);
    assert_false(a.over);
    end();
    assert_int_equal(a.outcome, WEIR__FLEET_ALONE);
}

/* All or nothing: both are drawn from; when one refuses, the units of the other go back; and then
 * the one that refused is asked first. */
TEST(test_all_or_nothing)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    wait_of(&a, 5, 2, NOW);
    assert_int_equal(sent.draws, 2);
    answer(0, 5, false, NOW + MS);
    assert_true(!a.over && sent.draws == 2); /* it has enough there */
    answer(1, 0, true, NOW + 2 * MS);
    assert_true(a.over && a.outcome == WEIR__FLEET_REFUSED);
    assert_fields(sent, (repaid, 5), (repaid_of, NOW + MS));
    assert_int_equal(have(NULL, key(0), NOW + 2 * MS), 0);

    weir_time later = NOW + 50 * MS; /* open again, but it refused within a life */
    wait_of(&a, 5, 2, later);
    assert_true(sent.draws == 3 && sent.key == key(1));
    answer(1, 2, false, later + MS);
    assert_true(sent.draws == 4 && sent.key == key(0));
    answer(0, 5, false, later + 2 * MS);
    assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
    assert_int_equal(sent.repaid, 5);
    wait_of(&a, 5, 2, later + S); /* the other's units come when nobody waits any more */
    answer(1, 0, true, later + S + MS);
    assert_int_equal(a.outcome, WEIR__FLEET_REFUSED);
    answer(0, 5, false, later + S + 2 * MS);
    assert_int_equal(sent.repaid, 10);
    wait_of(&a, 5, 2, later + 2 * S); /* it has the last units there, and waits for the other's */
    answer(0, 5, true, later + 2 * S + MS);
    answer(1, 2, false, later + 2 * S + 2 * MS);
    assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
    end();
}

/* A limit that is not the fleet's refuses when the units have come: they go back. */
TEST(test_another_limit_refuses)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    sent.not_ours = true;
    wait_of(&a, 5, 0, NOW);
    answer(0, 5, false, NOW + MS);
    assert_true(a.over && a.outcome == WEIR__FLEET_REFUSED);
    assert_int_equal(sent.repaid, 5);
    end();
}

TEST(test_a_wait_can_be_cancelled)
{
    struct weir__fleet_wait a, b;

    begin(16, 0);
    wait_of(&a, 5, 0, NOW);
    wait_of(&b, 1, 0, NOW);
    weir__fleet_cancel(fleet, &a, NOW + MS);
    assert_true(a.over);
    assert_int_equal(sent.done, 0);
    answer(0, 5, false, NOW + 2 * MS); /* the other one takes what came */
    assert_int_equal(b.outcome, WEIR__FLEET_TOOK);
    end();
    assert_int_equal(sent.repaid, 4);
}

static struct weir_decision purse_says(int limit, weir_time now)
{
    struct weir_decision d;

    weir_step_peek(&limits[limit].purse, purses[limit], &(struct weir_ask){ .now = now, .cost = 1 },
                   &d);
    return d;
}

/* The purse tells the account's time (a meter's for one unit), and is closed for a life at most. */
TEST(test_a_closed_purse_says_when_to_come)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    wait_of(&a, 0, 1, NOW);
    struct weir__fleet_answer none = { { 0, 50, true, NOW, 60 * MS }, 0, 900 * MS, 900 * MS };
    weir__fleet_drawn(fleet, key(1), sent.id, &none, NOW + MS);
    assert_fields(a, (outcome, WEIR__FLEET_REFUSED), (retry, 900 * MS));
    assert_fields(purse_says(1, NOW + 2 * MS), (reason, WEIR_LIMITED), (retry, 899 * MS));
    weir_time open = NOW + MS + limits[1].terms.life;
    assert_true(weir__fleet_turn(fleet, NOW + 2 * MS) <= open && weir__fleet_turn(fleet, open) > 0);
    assert_int_equal(purse_says(1, open + MS).reason, WEIR_DRY);
    wait_of(&a, 900, 0, NOW);
    weir__fleet_drawn(fleet, key(0), sent.id, &none, NOW + MS);
    assert_true(purse_says(0, NOW + MS).retry <= key(0)->closed_until - NOW);
    weir__fleet_drop(fleet, key(0), NOW + MS);
    assert_int_equal(purse_says(0, NOW + MS).reason, WEIR_DRY);
    end();
}

/* An ask for more than is left closes the purse for nobody who wants less. */
TEST(test_a_large_ask_is_refused_alone)
{
    struct weir__fleet_wait a, b, c;

    begin(16, 0);
    wait_of(&a, 0, 90, NOW);
    wait_of(&b, 0, 10, NOW);
    wait_of(&c, 0, 95, NOW);
    struct weir__fleet_answer few = { { 0, 25, true, NOW, 60 * MS }, 50, 900 * MS, 900 * MS };
    weir__fleet_drawn(fleet, key(1), sent.id, &few, NOW + MS);
    assert_fields(a, (outcome, WEIR__FLEET_REFUSED), (retry, 900 * MS));
    assert_fields(c, (outcome, WEIR__FLEET_REFUSED), (retry, 900 * MS));
    assert_fields(sent.draw, (need, 10), (waiting, 10));
    answer(1, 10, false, NOW + 2 * MS);
    assert_int_equal(b.outcome, WEIR__FLEET_TOOK);
    int draws = sent.draws;
    wait_of(&a, 0, 90, NOW + 3 * MS);
    assert_true(a.over && a.outcome == WEIR__FLEET_REFUSED && sent.draws == draws);
    wait_of(&b, 0, 89, NOW + 3 * MS);
    assert_true(!b.over && sent.draws == draws + 1);
    end();
}

/* More keys than there is room for: those about which nothing is known go. */
TEST(test_idle_keys_make_room)
{
    struct weir__fleet_wait a;
    char name[2] = "a";

    begin(4, 0);
    wait_of(&a, 1, 0, NOW);
    for (int i = 0; i < 100; i++) {
        name[0] = (char)('A' + i % 50);
        name[1] = (char)i;
        assert_non_null(
            weir__fleet_key(fleet, &limits[1], (struct weir_key){ name, 2 }, 0, NOW + i));
    }
    answer(0, 1, false, NOW + MS); /* the one that waits has stayed */
    assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
    char longest[WEIR__FLEET_KEY_MAX + 1] = { 0 };
    assert_null(
        weir__fleet_key(fleet, &limits[1], (struct weir_key){ longest, sizeof(longest) }, 0, NOW));
    end();
}
