/* A process is killed between a seat and its key's count: the two tell which of them is right. */
#include "unit/test.h"

#include "unit/guarding.h"

#define SEAT 5

struct case_ {
    struct weir_table *table;
    struct weir_guard *guard;
    const struct weir__held *held;
    struct weir__home home;
    void *slot;
    uint64_t word, *count;
};

static struct case_ begin(struct weir_table *table)
{
    struct case_ c = { .table = table };

    c.guard = guard_of(table, "g", &(struct weir_guard_options){ .max_per_key = 9 });
    c.held = &c.guard->held;
    c.home = weir__held_home(c.held, c.guard->plan->salt, key_of("ann"));
    c.slot = weir__held_slot(c.held, c.home, NOW);
    c.count = weir__slot_pin(&table->keys, c.slot);
    c.word = weir__permit_word(NOW, 2, 0, 0) | 1;
    return c;
}

/* The first step of an enter: the seat is taken, and not counted. */
static void sit(const struct case_ *c, uint32_t seat, uint32_t holder)
{
    c->held->seats[seat] =
        (struct weir__seat){ c->word, weir__held_ref(c->held, c->slot, 2, holder) };
}

/* The second: it is. */
static void add(const struct case_ *c, uint32_t seat)
{
    int64_t out;

    sit(c, seat, 0);
    assert_int_equal(weir__held_add(c->held, c->home, c->slot, seat, 2, 9, &out), WEIR__HELD_ADDED);
}

static int64_t count_of(const struct case_ *c)
{
    void *slot;

    return weir__held_count(c->held, c->home, &slot);
}

static bool is_free(const struct case_ *c, uint32_t seat)
{
    const struct weir__seat *s = &c->held->seats[seat];

    return weir__permit_weight(s->word) == 0 && s->ref == 0;
}

TEST(test_G1_a_seat_that_was_not_counted_is_free_once_its_process_is_dead)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    table->holders[7].pid = 1;
    sit(&c, SEAT, 7);
    assert_int_equal(weir__held_settle(c.held, SEAT), 0);
    assert_false(is_free(&c, SEAT)); /* it may go on */
    assert_false(weir__held_is_certain(c.held, SEAT));
    table->holders[7].pid = 0;
    assert_int_equal(weir__held_settle(c.held, SEAT), c.word);
    assert_true(is_free(&c, SEAT));
    assert_int_equal(count_of(&c), 0);
}

TEST(test_G1_a_seat_that_was_counted_stays)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    add(&c, SEAT); /* killed here */
    assert_int_equal(weir__held_settle(c.held, SEAT), 0);
    assert_true(weir__held_is_certain(c.held, SEAT));
    assert_int_equal(count_of(&c), 2);
    assert_true(weir__held_free(c.held, SEAT, c.word)); /* by a sweep */
    assert_false(weir__held_free(c.held, SEAT, c.word));
    assert_true(is_free(&c, SEAT));
    assert_int_equal(count_of(&c), 0);
}

TEST(test_G1_others_who_change_the_count_remember_the_last_seat)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    add(&c, SEAT);
    assert_false(weir__held_is_certain(c.held, SEAT));
    add(&c, SEAT + 1);
    assert_true(weir__held_is_certain(c.held, SEAT));
    assert_false(weir__held_is_certain(c.held, SEAT + 1));
    assert_true(weir__held_free(c.held, SEAT, c.word));
    assert_int_equal(count_of(&c), 2);
}

TEST(test_G1_a_permit_that_was_half_given_back_is_given_back_once)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    for (int others = 0; others < 2; others++) {
        add(&c, SEAT);
        /* The seat is free and its count is not lowered: killed here. */
        c.held->seats[SEAT] = (struct weir__seat){ weir__permit_freed(c.word),
                                                   c.held->seats[SEAT].ref | WEIR__HELD_COUNTED };
        if (others) {
            add(&c, SEAT + 1);
            assert_int_equal(count_of(&c), 4);
        }
        assert_int_equal(weir__held_settle(c.held, SEAT), 0);
        assert_int_equal(weir__held_settle(c.held, SEAT), 0);
        assert_true(is_free(&c, SEAT));
        assert_int_equal(count_of(&c), others ? 2 : 0);
    }
}

TEST(test_G1_a_count_that_was_lowered_is_not_lowered_again)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    for (int others = 0; others < 2; others++) {
        add(&c, SEAT);
        add(&c, SEAT + 1);
        uint64_t ref = c.held->seats[SEAT].ref;
        assert_true(weir__held_free(c.held, SEAT, c.word));
        c.held->seats[SEAT].ref = ref | WEIR__HELD_COUNTED; /* killed before this was cleared */
        if (others)
            add(&c, SEAT + 2);
        assert_int_equal(weir__held_settle(c.held, SEAT), 0);
        assert_true(is_free(&c, SEAT));
        assert_int_equal(count_of(&c), others ? 4 : 2);
        assert_true(weir__held_free(c.held, SEAT + 1, c.word));
    }
}

/* If the key came back to the slot, its count would not name the seat. */
TEST(test_G1_a_slot_that_makes_room_clears_its_last_seat)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    assert_true(weir__held_is_idle(table, c.home.tag, c.slot));
    add(&c, SEAT);
    assert_false(weir__held_is_idle(table, c.home.tag, c.slot));
    uint64_t ref = c.held->seats[SEAT].ref | WEIR__HELD_COUNTED;
    assert_true(weir__held_free(c.held, SEAT, c.word));
    c.held->seats[SEAT].ref = ref; /* killed before: only the count says that it was given back */
    assert_true(weir__held_is_idle(table, c.home.tag, c.slot));
    assert_true(is_free(&c, SEAT));
}

TEST(test_G1_after_a_reboot_the_seats_tell)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    add(&c, SEAT);
    add(&c, SEAT + 1);
    struct weir__home lost = weir__held_home(c.held, c.guard->plan->salt, key_of("bob"));
    uint64_t *torn = weir__slot_pin(&table->keys, weir__held_slot(c.held, lost, NOW));
    *torn = 7; /* a count without a seat */
    *c.count = 1;
    c.held->seats[SEAT + 2] = (struct weir__seat){ 3, c.held->seats[SEAT].ref }; /* no permit */
    c.held->seats[SEAT + 3] = (struct weir__seat){ c.word, 999999 };             /* no slot */
    weir__held_rebuild(table);
    assert_int_equal(count_of(&c), 4);
    assert_int_equal(weir__held_in(*torn), 0);
    assert_true(is_free(&c, SEAT + 2));
    assert_int_equal(c.held->seats[SEAT + 3].ref, 0);
    assert_true(weir__held_free(c.held, SEAT, c.word));
    assert_true(weir__held_free(c.held, SEAT + 1, c.word));
    assert_int_equal(count_of(&c), 0);
    assert_true(weir__held_is_idle(table, c.home.tag, c.slot));
}

/* Slots that are kept from permits and empty are nobody's: they make no limiter's part larger than
 * the guard's, which has the most. */
TEST(test_T2_empty_slots_count_for_no_limiter)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1h");
    struct case_ c = begin(table);
    struct weir__home new = weir__held_home(c.held, c.guard->plan->salt, key_of("bob"));
    int limited = 0;

    take(limiter, "k", 5, NOW);
    add(&c, SEAT);
    const struct weir__wide held = *(struct weir__wide *)c.slot,
                            used =
                                *weir__wide_find(&table->keys, weir__home_of(limiter, key_of("k")));
    for (uint64_t i = 0; i < WEIR__GROUP_SLOTS; i++) {
        struct weir__wide *slot = weir__wide_at(&table->keys, 0, new.first + i);
        uint64_t key = (i + 1) << 32; /* another tag for each */
        *slot = (struct weir__wide){ 0 };
        if ((new.first + i) % 8 == 7)
            continue;
        *slot = limited < 50 ? used : held;
        slot->tag = weir__tag_of(slot->tag ^ key, weir__tag_id(slot->tag));
        limited++;
    }
    table->keys.rooms[0].reach = 0;
    assert_null(weir__held_slot(c.held, new, NOW));
}

/* Any bytes at all: nothing reaches out, nothing waits. */
TEST(test_G1_damaged_seats_and_counts_do_no_harm)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct case_ c = begin(table);
    uint64_t seed = 3;
    for (int i = 0; i < 20000; i++) {
        uint32_t seat = (uint32_t)(random64(&seed) % 8);
        int64_t out;
        c.held->seats[seat] = (struct weir__seat){ random64(&seed) >> random64(&seed) % 64,
                                                   random64(&seed) >> random64(&seed) % 64 };
        *c.count = (random64(&seed) >> random64(&seed) % 64) & ~WEIR__PIN;
        weir__held_settle(c.held, seat);
        weir__held_free(c.held, seat, c.held->seats[seat].word);
        (void)weir__held_add(c.held, c.home, c.slot, seat, 1, 9, &out);
    }
    weir__held_end(c.held);
}
