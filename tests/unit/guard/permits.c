/* Permits and their leases: renewed, idle, over (G1). */
#include "unit/test.h"

#include "unit/guarding.h"

TEST(test_a_permit_word_says_what_was_put_in)
{
    uint64_t seed = 1;

    for (int i = 0; i < 10000; i++) {
        uint32_t weight = 1 + (uint32_t)(random64(&seed) % 16384),
                 holder = (uint32_t)(random64(&seed) % 1024);
        uint32_t probe = (uint32_t)(random64(&seed) % 64);
        uint64_t word = weir__permit_word((weir_time)(random64(&seed) >> 1), weight, holder, probe);
        assert_int_equal(weir__permit_weight(word), weight);
        assert_int_equal(weir__permit_holder(word), holder);
        assert_int_equal(weir__permit_probe(word), probe);
        assert_int_equal(weir__permit_freed(word), 0);
    }
}

TEST(test_G1_a_lease_ends_and_a_late_exit_changes_nothing)
{
    A_GUARD(g, .max = 2, .lease = 30 * S);
    struct weir_permit a, b, c;
    assert_true(enter_at(g, NOW, &a));
    assert_true(enter_at(g, NOW + 20 * S, &b));
    assert_int_equal(why_not(g, NOW + 29 * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 31 * S), WEIR_GRANTED); /* a is over */
    struct weir_guard_info info = info_of(g, NOW + 31 * S);
    assert_fields(info, (in_flight, 1), (reclaimed, 1));
    assert_fields(info.events[0], (kind, WEIR_GUARD_EVENT_RECLAIMED), (to, 1));
    assert_true(enter_at(g, NOW + 31 * S, &c));
    assert_false(weir_exit(g, &a, WEIR_SUCCEEDED, NOW + 32 * S));
    assert_int_equal(info_of(g, NOW + 32 * S).in_flight, 2);
    assert_true(weir_exit(g, &b, WEIR_SUCCEEDED, NOW + 32 * S));
    assert_true(weir_exit(g, &c, WEIR_SUCCEEDED, NOW + 32 * S));
}

TEST(test_G1_a_lease_that_is_renewed_goes_on)
{
    A_GUARD(g, .max = 1, .lease = 10 * S);
    struct weir_permit p, old;
    assert_true(enter_at(g, NOW, &p));
    for (int i = 1; i <= 10; i++) {
        old = p;
        assert_true(weir_permit_renew(g, &p, NOW + i * 8 * S));
        assert_false(weir_permit_renew(g, &old, NOW + i * 8 * S)); /* there is one of it */
        assert_int_equal(why_not(g, NOW + i * 8 * S + 7 * S), WEIR_BUSY);
    }
    assert_int_equal(why_not(g, NOW + 91 * S), WEIR_GRANTED);
    assert_false(weir_permit_renew(g, &p, NOW + 91 * S));
    assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 91 * S));
}

/* The holder did not hear that its permit was renewed, and asks again. */
TEST(test_G1_a_renewal_can_be_repeated)
{
    for (int keyed = 0; keyed < 2; keyed++) {
        A_GUARD(g, .max = 2, .max_per_key = keyed ? 2 : 0, .lease = 10 * S);
        struct weir_permit p, old, lost, next;
        assert_true(enter_at(g, NOW, &p));
        old = p;
        assert_false(weir__permit_repeat(g, &p, NOW)); /* it was not renewed */
        assert_true(weir_permit_renew(g, &p, NOW + 4 * S));
        for (int i = 0; i < 3; i++) { /* nor did it hear the next answers */
            lost = old;
            assert_false(weir_permit_renew(g, &lost, NOW + (5 + i) * S));
            assert_true(weir__permit_repeat(g, &lost, NOW + (5 + i) * S));
        }
        assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 8 * S)); /* there is one of it */
        p = lost;
        assert_true(weir_permit_renew(g, &p, NOW + 9 * S));
        assert_false(weir__permit_follow(g, &old)); /* one renewal is followed, not two */
        assert_true(weir__permit_follow(g, &lost));
        assert_true(weir_exit(g, &lost, WEIR_SUCCEEDED, NOW + 9 * S));
        lost = p;
        for (int i = 0; i < 8; i++) { /* others in its seat are not it */
            assert_true(enter_at(g, NOW + 9 * S, &next));
            assert_int_equal(next.seat, p.seat);
            assert_false(weir__permit_follow(g, &lost));
            assert_true(weir_permit_renew(g, &next, NOW + 9 * S));
            assert_false(weir__permit_follow(g, &lost));
            assert_true(weir_exit(g, &next, WEIR_SUCCEEDED, NOW + 9 * S));
        }
        assert_int_equal(info_of(g, NOW + 9 * S).in_flight, 0);
    }
}

static bool enter_for(struct weir_guard *g, const char *key, weir_time now,
                      struct weir_permit *permit)
{
    struct weir_decision d;

    return weir_enter(g, &(struct weir_ask){ .key = key_of(key), .now = now }, permit, &d);
}

/* A seat counts its uses modulo 2048. */
TEST(test_G1_a_used_permit_is_not_the_one_2048_uses_later)
{
    for (int keyed = 0; keyed < 2; keyed++) {
        A_GUARD(g, .max = 1, .max_per_key = keyed, .lease = 3600 * S);
        struct weir_permit used[3], p, renewed;
        assert_true(enter_for(g, "ann", NOW, &p));
        for (int i = 0; i < 3; i++) { /* as it entered, and renewed once and twice */
            used[i] = p;
            assert_true(i == 2 || weir_permit_renew(g, &p, NOW + (i + 1) * S));
        }
        assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 2 * S));
        for (int i = 0; i < 2047; i++) {
            assert_true(enter_for(g, "ann", NOW + 3 * S, &p));
            assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 3 * S));
        }
        assert_true(enter_for(g, "bob", NOW + 4 * S, &p));
        assert_int_equal(p.seat, used[0].seat);
        assert_true(weir__permit_is_same(p.word, used[0].word));
        for (int n = 0; n < 3; n++) {
            for (int i = 0; i < 3; i++) {
                renewed = used[i];
                assert_false(weir__permit_follow(g, &renewed));
                assert_false(weir__permit_repeat(g, &renewed, NOW + 5 * S));
            }
            renewed = p;
            assert_true(weir_permit_renew(g, &p, NOW + (5 + n) * S));
            assert_true(weir__permit_follow(g, &renewed));
        }
        assert_true(weir_exit(g, &renewed, WEIR_SUCCEEDED, NOW + 8 * S));
        assert_int_equal(info_of(g, NOW + 8 * S).in_flight, 0);
        assert_true(enter_for(g, "ann", NOW + 8 * S, &p)); /* nothing is left of its key */
    }
}

static void set_lease(struct weir_guard *g, weir_time lease)
{
    assert_ok(weir_guard_change(g, &(struct weir_guard_options){ .max = 1, .lease = lease }, NULL));
}

TEST(test_G1_a_shorter_lease_does_not_end_permits_that_are_out)
{
    A_GUARD(g, .max = 1, .lease = 60 * S);
    struct weir_permit p, after;
    assert_true(enter_at(g, NOW, &p));
    set_lease(g, S);
    for (int i = 1; i < 60; i++)
        assert_int_equal(why_not(g, NOW + i * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 61 * S), WEIR_GRANTED);
    assert_true(enter_at(g, NOW + 100 * S, &after)); /* all of before are over by now */
    assert_int_equal(why_not(g, NOW + 100 * S + 900 * MS), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 102 * S), WEIR_GRANTED);
}

/* An idle one has half a lease more. */
TEST(test_G1_a_shorter_lease_does_not_end_permits_that_idle)
{
    A_GUARD(g, .max = 1, .lease = 60 * S);
    struct weir_permit p;
    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_permit_idle(g, &p, NOW));
    set_lease(g, S);
    for (int i = 1; i < 90; i++)
        assert_int_equal(why_not(g, NOW + i * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 91 * S), WEIR_GRANTED);
}

TEST(test_G1_a_longer_lease_that_no_sweep_has_seen_is_kept_too)
{
    A_GUARD(g, .max = 1, .lease = S);
    struct weir_permit p;
    assert_int_equal(why_not(g, NOW), WEIR_GRANTED);
    set_lease(g, 60 * S);
    assert_true(enter_at(g, NOW + MS, &p));
    set_lease(g, S);
    assert_int_equal(why_not(g, NOW + 3 * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 59 * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 61 * S), WEIR_GRANTED);
}

/* The first lease is long over when the second one ends, but not a lease in between. */
TEST(test_G1_a_lease_between_two_changes_is_kept_too)
{
    static const weir_time between[] = { 30 * S, 60 * S };

    for (size_t i = 0; i < COUNT_OF(between); i++) {
        A_GUARD(g, .max = 1, .lease = 60 * S);
        struct weir_permit p;
        assert_int_equal(why_not(g, NOW), WEIR_GRANTED);
        set_lease(g, S);
        assert_int_equal(why_not(g, NOW + S), WEIR_GRANTED); /* those of before end by 61 s */
        assert_int_equal(why_not(g, NOW + 50 * S), WEIR_GRANTED);
        set_lease(g, between[i]);
        assert_true(enter_at(g, NOW + 50 * S + MS, &p));
        set_lease(g, S);
        for (weir_time age = S; age < between[i]; age += S)
            assert_int_equal(why_not(g, NOW + 50 * S + age), WEIR_BUSY);
        assert_int_equal(why_not(g, NOW + 111 * S), WEIR_GRANTED);
    }
}

TEST(test_G4_a_probe_that_is_lost_comes_back_with_its_lease)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .lease = 10 * S,
        .breaker = { .errors = 1, .min_calls = 1, .open_for = S, .probes = 1, .jitter_percent = -1 }
    };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_permit lost;
    work(g, NOW, MS, WEIR_FAILED);
    assert_true(enter_at(g, NOW + 2 * S, &lost));
    assert_int_equal(why_not(g, NOW + 11 * S), WEIR_OPEN);
    assert_true(work(g, NOW + 13 * S, MS,
                     WEIR_SUCCEEDED)); /* stuck half-open for ever elsewhere: resilience4j #903 */
    assert_int_equal(info_of(g, NOW + 14 * S).breaker, WEIR_BREAKER_CLOSED);
    assert_false(weir_exit(g, &lost, WEIR_FAILED, NOW + 14 * S));
    assert_int_equal(info_of(g, NOW + 14 * S).breaker, WEIR_BREAKER_CLOSED);
}

/* Its lease is the one that it was given: so long nobody else probes, and the breaker is not well.
 */
TEST(test_G4_a_shorter_lease_does_not_end_probes_that_are_out)
{
    struct weir_guard_options o = {
        .lease = 60 * S,
        .raises = 3,
        .breaker = { .errors = 1, .min_calls = 1, .open_for = S, .probes = 1, .jitter_percent = -1 }
    };
    struct weir_permit probe;

    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g = guard_of(table, "g", &o);
    work(g, NOW, MS, WEIR_FAILED);
    assert_true(enter_at(g, NOW + 2 * S, &probe));
    o.lease = S;
    assert_ok(weir_guard_change(g, &o, NULL));
    for (int i = 3; i < 60; i++) {
        assert_int_equal(why_not(g, NOW + i * S), WEIR_OPEN);
        assert_int_equal(weir_degradation_get(table, NULL), 3);
    }
    assert_true(weir_exit(g, &probe, WEIR_SUCCEEDED, NOW + 60 * S));
    assert_int_equal(info_of(g, NOW + 60 * S).breaker, WEIR_BREAKER_CLOSED);
}

#define WRAP ((weir_time)1 << 43) /* a permit's time is kept modulo this: 2.4 hours */

static void expect_over_after(weir_time lease, weir_time span)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g =
        guard_of(table, "g", &(struct weir_guard_options){ .max = 1, .lease = lease });
    struct weir_permit p, q;

    assert_true(enter_at(g, NOW, &p));
    if (why_not(g, NOW + span) != WEIR_GRANTED)
        fail_msg("a lease of %lld s is not over after %lld s", (long long)(lease / S),
                 (long long)(span / S));
    assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + span));
    assert_true(enter_at(g, NOW + span, &q)); /* and the next lease is a whole one */
    assert_int_equal(why_not(g, NOW + span + lease - S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + span + lease + S), WEIR_GRANTED);
}

/* A weekend without a single ask. */
TEST(test_G1_a_lease_that_ended_long_ago_is_over)
{
    static const weir_time leases[] = { 10 * S, 60 * S, 3600 * S };

    for (size_t i = 0; i < COUNT_OF(leases); i++) {
        for (weir_time span = leases[i] + 10 * S; span < 6 * 3600 * S; span += 97 * S)
            expect_over_after(leases[i], span);
        for (int hours = 5; hours <= 100; hours++)
            expect_over_after(leases[i], hours * 3600 * S);
        for (int wraps = 1; wraps <= 42; wraps++)
            for (weir_time around = -2 * S; around <= 2 * S; around += S)
                expect_over_after(leases[i], wraps * WRAP + around);
        expect_over_after(leases[i], 10 * 365 * 86400 * S);
    }
}

/* Nobody enters for hours, and its holder renews it every now and then. */
TEST(test_G1_a_lease_that_is_renewed_for_hours_goes_on)
{
    A_GUARD(g, .max = 2, .lease = 3600 * S);
    struct weir_permit p, lost;
    assert_true(enter_at(g, NOW, &lost));
    assert_true(enter_at(g, NOW, &p));
    for (int i = 1; i <= 200; i++)
        assert_true(weir_permit_renew(g, &p, NOW + i * 1800 * S));
    struct weir_guard_info info = info_of(g, NOW + 200 * 1800 * S + 3000 * S);
    assert_fields(info, (in_flight, 1), (reclaimed, 1));
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 200 * 1800 * S + 3000 * S));
}

static void expect_idle_until(weir_time lease, weir_time idle, weir_time span)
{
    A_GUARD(g, .max = 1, .lease = lease);
    struct weir_permit p;
    weir_time left = idle + lease + lease / 2 - span;

    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_permit_idle(g, &p, NOW + idle));
    if (info_of(g, NOW + span).in_flight != (left > 0))
        fail_msg("a lease of %lld s, half of which began again after %lld s, after %lld s",
                 (long long)(lease / S), (long long)(idle / S), (long long)(span / S));
}

/* The host is suspended while a client is slow. */
TEST(test_G1_an_idle_permit_outlives_a_suspension)
{
    static const weir_time leases[] = { 700 * S, 1800 * S, 3600 * S };

    for (size_t i = 0; i < COUNT_OF(leases); i++)
        for (weir_time span = 607 * S; span < 9 * 3600 * S; span += 97 * S) {
            expect_idle_until(leases[i], 0, span);
            expect_idle_until(leases[i], 599 * S, span);
        }
}

/* Somebody is in a sweep after hours, and somebody else has swept meanwhile and entered. */
TEST(test_G1_a_sweep_after_hours_spares_those_that_have_just_entered)
{
    for (int wraps = 1; wraps <= 3; wraps++) {
        A_GUARD(g, .max = 3, .lease = 60 * S);
        struct weir_permit old, young;
        assert_true(enter_at(g, NOW, &old));
        weir_time later = NOW + wraps * WRAP;
        g->record->ticker = 1;                   /* stopped before its sweep */
        assert_true(enter_at(g, later, &young)); /* it caught up by itself */
        assert_int_equal(g->record->in_flight, 1);
        g->record->ticker = 0;
        assert_true(weir_exit(g, &young, WEIR_SUCCEEDED, later + S));
    }
}

TEST(test_seats_are_found_until_the_last)
{
    A_GUARD(g, .max = 16384);
    FINALLY(memory_drop) struct weir_permit *p = calloc(16384, sizeof(*p));
    for (int i = 0; i < 16384; i++)
        assert_true(enter_at(g, NOW + i, &p[i]));
    assert_int_equal(why_not(g, NOW), WEIR_BUSY);
    for (int i = 16384; i-- > 0;)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW + S));
    assert_int_equal(info_of(g, NOW + S).in_flight, 0);
}
