/* hand.c -- changes of several pairs: all or none, whatever the pairs were like meanwhile. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "table/hand.h"
#include "table/slot.h"

/* The slot's pair of a key. */
struct pair {
    uint64_t *words;
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
    p.entry =
        (struct weir__entry){ .at = weir__offset_of(limiter->table, weir__slot_pin(space, slot)),
                              .before = { p.words[0], p.words[1] },
                              .after = { p.words[0], p.words[1] + 2 } };
    return p;
}

static void assert_words(const struct pair *p, const uint64_t words[2])
{
    assert_int_equal(p->words[0], words[0]);
    assert_int_equal(p->words[1], words[1]);
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

/* The blocks of an ask that is decided otherwise afterwards are others' to take. */
TEST(test_T3_a_hand_that_failed_keeps_few_blocks)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 1000 });
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
    static const char *const keys[] = { "a", "b", "c", "d" };
    struct weir__hand *hand = weir__hand_take(table);

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct pair p = pair_for(limiter, keys[i]);
        p.entry.before[0] += i == 0; /* the first cannot be pinned, nor any other */
        p.entry.before[1] += i == 0;
        p.entry.block_after = weir__hand_block(&table->keys, hand, i, 64, false);
        assert_true(p.entry.block_after != 0);
        weir__hand_add(hand, &p.entry);
    }
    assert_false(weir__hand_commit(table, hand));
    assert_true(hand->spares[1] != 0);
    assert_true(hand->spares[2] == 0 && hand->spares[3] == 0);
    weir__hand_give(hand);
}

/* Its owner was stopped just then.  Others have freed the block since, and its chunk with it. */
TEST(test_T3_a_block_that_was_written_is_no_spare_although_it_is_free_again)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 1000 });
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
    struct weir__hand *hand = weir__hand_take(table);
    struct pair p = pair_for(limiter, "a");

    p.entry.block_after = weir__hand_block(&table->keys, hand, 0, 64, false);
    weir__hand_add(hand, &p.entry);
    hand->status = hand->status >> 2 << 2 | WEIR__HAND_COMMITTED;
    weir__block_give(&table->keys.slab, p.entry.block_after, 64);
    weir__hands_recover(table, 0);
    assert_int_equal(hand->owner, 0);
    assert_int_equal(hand->spares[0], 0);
}
