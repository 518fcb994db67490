/* slot.c -- keys and their slots, as `CLUSTER KEYSLOT` answers. */
#include "unit/test.h"

#include "cluster/redis/slot.h"

static int slot(const char *key)
{
    return weir__redis_slot(key, strlen(key));
}

TEST(test_D2_slots)
{
    assert_int_equal(slot("123456789"), 0x31C3); /* the check value of CRC-16/XMODEM */
    assert_int_equal(slot(""), 0);
    assert_int_equal(slot("foo"), 12182);
    assert_int_equal(slot("bar"), 5061);
    assert_int_equal(weir__redis_slot("a\0b", 3), weir__redis_slot("{a\0b}c", 6));
}

TEST(test_D2_hash_tags)
{
    assert_int_equal(slot("{foo}.x"), slot("foo"));
    assert_int_equal(slot("x{foo}{bar}"), slot("foo"));
    assert_int_equal(slot("x{{foo}}"), slot("{foo"));
    assert_int_not_equal(slot("{}foo"), slot("foo")); /* empty: the whole key counts */
    assert_int_not_equal(slot("{foo"), slot("foo"));
    assert_int_not_equal(slot("foo}{"), slot("foo"));
}
