/* late-units.c -- answers and units that come when nobody waits for them any more, or when their
 * window is over. */
#include "unit/test.h"

#include "unit/fleet-node.h"

/* Units drawn for a window that is over by now are for those that waited, and for nobody else. */
TEST(test_a_late_answer)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    wait_of(&a, 0, 2, NOW);
    weir__fleet_drawn(fleet, key(1), sent.id,
                      &(struct weir__fleet_answer){ { 5, 5, false, NOW, 2 * MS }, 0, 0, 0 },
                      NOW + 3 * MS);
    assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
    assert_int_equal(have(NULL, key(1), NOW + 3 * MS), 0);
    assert_int_equal(sent.repaid, 3);
    end();
}

/* Redis was stopped: the asks have been answered alone, and nobody waits.  All units of the draw go
 * back; those that were in the purse before stay there. */
TEST(test_a_late_answer_that_nobody_waits_for)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    fill(NULL, key(1), 4, NOW, NOW);
    wait_of(&a, 0, 6, NOW);
    weir__fleet_cancel(fleet, &a, NOW + MS);
    weir__fleet_drawn(fleet, key(1), sent.id,
                      &(struct weir__fleet_answer){ { 5, 5, false, NOW, 2 * MS }, 0, 0, 0 },
                      NOW + 3 * MS);
    assert_int_equal(have(NULL, key(1), NOW + 3 * MS), 4);
    assert_fields(sent, (repaid, 5), (repaid_of, NOW));
    end();
}

/* A meter has regained them by itself: paid back too, they would pass on top of the limit. */
TEST(test_a_late_answer_of_a_meter_pays_nothing_back)
{
    struct weir__fleet_wait a;

    begin(16, 0);
    wait_of(&a, 6, 0, NOW);
    weir__fleet_cancel(fleet, &a, NOW + MS);
    weir__fleet_drawn(fleet, key(0), sent.id,
                      &(struct weir__fleet_answer){ { 5, 5, false, NOW, 2 * MS }, 0, 0, 0 },
                      NOW + 3 * MS);
    assert_int_equal(have(NULL, key(0), NOW + 3 * MS), 0);
    assert_int_equal(sent.repaid, 0);
    end();
}

/* The end of its bucket is the end of what was drawn ahead: what nobody has spent by then counts
 * there until the window has slid on, unless it goes back. */
TEST(test_D3_units_that_expire_unspent_go_back_to_their_window)
{
    for (int window = 0; window <= 1; window++) {
        struct weir__fleet_wait a;
        begin(16, 0);
        wait_of(&a, window ? 0 : 2, window ? 2 : 0, NOW);
        weir__fleet_drawn(fleet, key(window), sent.id,
                          &(struct weir__fleet_answer){ { 50, 50, false, NOW, 5 * MS }, 0, 0, 0 },
                          NOW + MS);
        assert_int_equal(a.outcome, WEIR__FLEET_TOOK);
        take_out(NULL, key(window), 8, NOW + 2 * MS);
        wait_of(&a, window ? 0 : 2, window ? 2 : 0, NOW + 6 * MS);
        assert_fields(sent, (repaid, window ? 40 : 0), (repaid_of, window ? NOW : 0));
        assert_int_equal(have(NULL, key(window), NOW + 2 * MS), window ? 0 : 40); /* nor late */
        answer(window, 2, false, NOW + 7 * MS);
        assert_int_equal(sent.repaid, window ? 40 : 0); /* once */
        end();
    }
}

/* Nor are they in the purse while the ask lacks units of another limit; if it never gets those,
 * they go back, to the window that they are from. */
TEST(test_late_units_are_kept_for_their_ask)
{
    for (int refused = 0; refused <= 1; refused++) {
        struct weir__fleet_wait a, b;
        begin(16, 0);
        wait_of(&a, 5, 2, NOW);
        weir__fleet_drawn(fleet, key(1), sent.id,
                          &(struct weir__fleet_answer){ { 2, 2, false, NOW, 2 * MS }, 0, 0, 0 },
                          NOW + 3 * MS);
        assert_false(a.over);
        assert_int_equal(have(NULL, key(1), NOW + 3 * MS), 0);
        wait_of(&b, 0, 1, NOW + 3 * MS);
        assert_int_equal(sent.draw.waiting, 1); /* no more are drawn for the first */
        answer(1, 1, false, NOW + 4 * MS);
        assert_int_equal(b.outcome, WEIR__FLEET_TOOK);
        answer(0, refused ? 0 : 5, refused, NOW + 4 * MS);
        assert_int_equal(a.outcome, refused ? WEIR__FLEET_REFUSED : WEIR__FLEET_TOOK);
        assert_int_equal(have(NULL, key(1), NOW + 4 * MS), 0);
        assert_fields(sent, (repaid, refused ? 2 : 0), (repaid_of, refused ? NOW : 0));
        end();
    }
}

/* An ask takes the oldest units first.  Late ones beside others in the purse would be left in the
 * place of those, to be spent in another window. */
TEST(test_D3_late_units_take_no_others_place)
{
    struct weir__fleet_wait a, b;

    begin(16, 0);
    wait_of(&a, 0, 1, NOW);
    weir__fleet_drawn(fleet, key(1), sent.id,
                      &(struct weir__fleet_answer){ { 4, 4, false, NOW, 5 * MS }, 0, 0, 0 }, NOW);
    wait_of(&b, 0, 4, NOW + MS);
    assert_int_equal(sent.draw.need, 1);
    take_out(NULL, key(1), 1, NOW + 2 * MS);
    weir__fleet_drawn(fleet, key(1), sent.id,
                      &(struct weir__fleet_answer){ { 1, 1, false, NOW + MS, 2 * MS }, 0, 0, 0 },
                      NOW + 4 * MS);
    assert_false(b.over);
    assert_int_equal(have(NULL, key(1), NOW + 6 * MS), 0);
    assert_int_equal(sent.repaid, 3);
    assert_int_equal(sent.draw.need, 4);
    end();
}
