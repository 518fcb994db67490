/* hand.c -- changes of several pairs: all or none, whatever the pairs were like meanwhile. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "table/hand.h"
#include "table/slot.h"

/* The slot's pair of a key. */
struct pair {
    uint64_t *words, *pin; /* both; the one that takes the pin */
    struct weir__entry entry;
};

/* As it is, to become what two more units make of it. */
static struct pair pair_for(struct weir_limiter *limiter, const char *key)
{
    struct weir__space *space = limiter->space;
    struct pair p;

    take(limiter, key, 1, NOW);
    void *slot = weir__slot_find(space, weir__home_of(limiter, key_of(key)));
    p.words = weir__slot_pair(space, slot);
    p.pin = weir__slot_pin(space, slot);
    p.entry = (struct weir__entry){ .at = weir__offset_of(limiter->table, p.pin),
                                    .before = { p.words[0], p.words[1] },
                                    .after = { p.words[0], p.words[1] + 2 } };
    return p;
}

static void assert_words(const struct pair *p, const uint64_t words[2])
{
    assert_int_equal(p->words[0], words[0]);
    assert_int_equal(p->words[1], words[1]);
}

/* The word that does not take the pin. */
static size_t other(const struct pair *p)
{
    return p->pin == p->words;
}

static uint64_t pin_of(struct weir_table *table, const struct weir__hand *hand)
{
    uint64_t i = (weir__offset_of(table, hand) - WEIR__HANDS_AT) / WEIR__HAND_BYTES;

    return WEIR__PIN | i << (63 - WEIR__HAND_BITS) | hand->status >> 2;
}

TEST(test_a_hand_changes_nothing_if_either_word_of_a_pair_has_changed)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t word = 0; word < 2; word++) {
            OWN(weir_table) *table =
                table_with(&(struct weir_table_options){ .keys = 1000, .narrow = narrow });
            struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
            struct pair one = pair_for(limiter, "one"), two = pair_for(limiter, "two");
            struct weir__entry stale = two.entry;
            struct weir__hand *hand = weir__hand_take(table);
            stale.before[word]++;
            weir__hand_add(hand, &one.entry);
            weir__hand_add(hand, &stale);
            assert_false(weir__hand_commit(table, hand));
            assert_words(&one, one.entry.before);
            assert_words(&two, two.entry.before);
            weir__hand_add(hand, &one.entry);
            weir__hand_add(hand, &two.entry);
            assert_true(weir__hand_commit(table, hand));
            assert_words(&one, one.entry.after);
            assert_words(&two, two.entry.after);
            weir__hand_give(hand);
        }
}

/* Its owner was stopped between the pin and the look at the other word. */
TEST(test_T1_a_pin_on_a_pair_that_had_changed_is_lifted)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .keys = 1000, .narrow = narrow });
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
        struct pair p = pair_for(limiter, "k");
        struct weir__entry stale = p.entry;
        struct weir__hand *hand = weir__hand_take(table);
        stale.before[other(&p)]++;
        weir__hand_add(hand, &stale);
        hand->status |= WEIR__HAND_UNDECIDED;
        *p.pin = pin_of(table, hand);
        weir__hand_settle(table, p.pin);
        assert_words(&p, p.entry.before);
        assert_int_equal(hand->status & 3, WEIR__HAND_ABORTED);
        assert_false(weir__hand_commit(table, hand));
        assert_words(&p, p.entry.before);
        weir__hand_give(hand);
    }
}
