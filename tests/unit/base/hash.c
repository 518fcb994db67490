/* hash.c -- the keyed hash: every byte and the length count, nothing beyond the key does, and keys
 * as people choose them spread evenly.
 *
 * The secrets are fixed, so each figure here is the same in every run: a bound that holds today
 * holds until the hash changes.
 */
#include "unit/test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "random.h"

#define LENGTH_MAX 300
#define KEYS       1000000

static void make_secrets(uint64_t secrets[WEIR__HASH_SECRETS], uint64_t seed)
{
    for (size_t i = 0; i < WEIR__HASH_SECRETS; i++)
        secrets[i] = random64(&seed);
}

static struct weir__hash hash_with(uint64_t seed, uint64_t salt, const void *bytes, size_t len)
{
    uint64_t secrets[WEIR__HASH_SECRETS];

    make_secrets(secrets, seed);
    return weir__hash_key(secrets, salt, (struct weir_key){ bytes, len });
}

static struct weir__hash hash(const void *bytes, size_t len)
{
    return hash_with(1, 0, bytes, len);
}

static void assert_same(struct weir__hash a, struct weir__hash b)
{
    assert_fields(a, (tag, b.tag), (place, b.place));
}

static void assert_apart(struct weir__hash a, struct weir__hash b)
{
    assert_int_not_equal(a.tag, b.tag);
    assert_int_not_equal(a.place, b.place);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static size_t count_doubles(uint64_t *numbers, size_t n)
{
    size_t doubles = 0;

    qsort(numbers, n, sizeof(*numbers), by_number);
    for (size_t i = 1; i < n; i++)
        doubles += numbers[i] == numbers[i - 1];
    return doubles;
}

/* ------------------------------------------------------------ what counts ---- */

TEST(test_same_key_same_hash_wherever_it_lies)
{
    unsigned char key[LENGTH_MAX], room[LENGTH_MAX + 32];
    uint64_t seed = 2;

    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (unsigned char)random64(&seed);
    for (size_t len = 0; len <= LENGTH_MAX; len++) {
        struct weir__hash wanted = hash(key, len);
        for (size_t offset = 0; offset < 16; offset++) {
            memset(room, (int)(offset * 7 + len),
                   sizeof(room)); /* what lies around it must not count */
            memcpy(room + offset, key, len);
            assert_same(hash(room + offset, len), wanted);
        }
    }
}

TEST(test_reads_no_byte_outside_the_key)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *room = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                  *middle = room + page;

    assert_true(room != MAP_FAILED);
    assert_int_equal(mprotect(middle, page, PROT_READ | PROT_WRITE), 0);
    memset(middle, 'x', page);
    for (size_t len = 0; len <= LENGTH_MAX; len++) /* one byte too many is a signal */
        assert_same(hash(middle, len), hash(middle + page - len, len));
    munmap(room, 3 * page);
}

TEST(test_no_bytes_is_a_key)
{
    assert_same(hash(NULL, 0), hash("", 0));
    assert_apart(hash("", 0), hash("\0", 1));
}

TEST(test_length_counts)
{
    static const unsigned char zeros[LENGTH_MAX + 1];
    uint64_t tags[LENGTH_MAX + 1], places[LENGTH_MAX + 1];

    assert_apart(hash("a", 1), hash("a\0", 2));
    assert_apart(hash("a", 1), hash("aa", 2));
    assert_apart(hash("aa", 2), hash("aaa", 3));
    for (size_t len = 0; len <= LENGTH_MAX; len++) {
        struct weir__hash h = hash(zeros, len);
        tags[len] = h.tag;
        places[len] = h.place;
    }
    assert_int_equal(count_doubles(tags, LENGTH_MAX + 1), 0);
    assert_int_equal(count_doubles(places, LENGTH_MAX + 1), 0);
}

TEST(test_every_byte_moves_tag_and_place)
{
    static const unsigned char masks[] = { 0x01, 0x80, 0xff };
    size_t n = 0, most = sizeof(masks) * LENGTH_MAX * (LENGTH_MAX + 1) / 2 + LENGTH_MAX + 1;
    uint64_t *tags = malloc(most * sizeof(*tags)), *places = malloc(most * sizeof(*places)),
             secrets[WEIR__HASH_SECRETS];
    unsigned char key[LENGTH_MAX];

    make_secrets(secrets, 1);
    memset(key, 'k', sizeof(key));
    for (size_t len = 0; len <= LENGTH_MAX; len++)
        for (size_t at = 0; at <= len; at++) /* at == len: the key as it is */
            for (size_t mask = 0; mask < (at == len ? 1 : sizeof(masks)); mask++, n++) {
                if (at < len)
                    key[at] ^= masks[mask];
                struct weir__hash h = weir__hash_key(secrets, 0, (struct weir_key){ key, len });
                if (at < len)
                    key[at] ^= masks[mask];
                tags[n] = h.tag;
                places[n] = h.place;
            }
    assert_int_equal(n, most);
    assert_int_equal(count_doubles(tags, n), 0);
    assert_int_equal(count_doubles(places, n), 0);
    free(tags);
    free(places);
}

TEST(test_order_of_words_counts)
{
    unsigned char key[160], swapped[160];

    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (unsigned char)(i * 31 + 7);
    for (size_t a = 0; a < sizeof(key); a += 8)
        for (size_t b = a + 8; b < sizeof(key); b += 8) {
            memcpy(swapped, key, sizeof(key));
            memcpy(swapped + a, key + b, 8);
            memcpy(swapped + b, key + a, 8);
            assert_apart(hash(key, sizeof(key)), hash(swapped, sizeof(key)));
        }
}

/* ------------------------------------------------------------------ spread ---- */

/* How far counts are from even: about cells - 1 if chance alone is at work, give or take sqrt(2 *
 * cells); in hundredths of that. */
static int64_t unevenness(const uint32_t *counts, size_t cells, int64_t n)
{
    int64_t even = n / (int64_t)cells, sum = 0;

    for (size_t i = 0; i < cells; i++)
        sum += ((int64_t)counts[i] - even) * ((int64_t)counts[i] - even);
    return sum * 100 / even / (int64_t)cells;
}

/* At 256 cells chance alone leaves 100 +- 9, so 150 is more than five times that away; more cells
 * vary less. */
#define UNEVENNESS_MAX 150

static size_t sequential_integer(char *out, uint64_t i)
{
    memcpy(out, &i, sizeof(i));
    return sizeof(i);
}

static size_t sequential_small_integer(char *out, uint64_t i)
{
    uint32_t n = (uint32_t)i;

    memcpy(out, &n, sizeof(n));
    return sizeof(n);
}

static size_t strided_integer(char *out, uint64_t i)
{
    return sequential_integer(out, i << 40);
}

static size_t decimal_string(char *out, uint64_t i)
{
    return (size_t)sprintf(out, "%llu", (unsigned long long)i);
}

static size_t address(char *out, uint64_t i)
{
    return (size_t)sprintf(out, "10.%u.%u.%u", (unsigned)(i >> 16 & 255), (unsigned)(i >> 8 & 255),
                           (unsigned)(i & 255));
}

static size_t common_prefix(char *out, uint64_t i)
{
    return (size_t)sprintf(out, "https://api.example.com/v1/customers/%llu/orders",
                           (unsigned long long)i);
}

static size_t long_common_prefix(char *out, uint64_t i)
{
    memset(out, 'p', 180);
    return 180 + (size_t)sprintf(out + 180, "%llu", (unsigned long long)i);
}

static size_t changing_front(char *out, uint64_t i)
{
    memset(out + 8, 's', 120);
    return sequential_integer(out, i) + 120;
}

static const struct {
    const char *name;
    size_t (*write)(char *out, uint64_t i);
} families[] = {
    { "sequential 64-bit integers", sequential_integer },
    { "sequential 32-bit integers", sequential_small_integer },
    { "integers in the high bits", strided_integer },
    { "decimal strings", decimal_string },
    { "addresses", address },
    { "a common prefix", common_prefix },
    { "a common prefix of 180 bytes", long_common_prefix },
    { "a changing front", changing_front },
};

static void expect_even(const char *family, const char *what, const uint32_t *counts, size_t cells)
{
    int64_t got = unevenness(counts, cells, KEYS);

    if (got > UNEVENNESS_MAX)
        fail_msg("%s: %s are uneven: %d, at most %d", family, what, (int)got, UNEVENNESS_MAX);
}

static void check_spread(const char *family, size_t (*write)(char *, uint64_t))
{
    uint64_t *tags = malloc(KEYS * sizeof(*tags)), secrets[WEIR__HASH_SECRETS];
    uint32_t *high = calloc(4096, sizeof(*high)), *low = calloc(256, sizeof(*low));
    uint32_t *both = calloc(4096, sizeof(*both)), *cross = calloc(4096, sizeof(*cross));
    char key[256];

    make_secrets(secrets, 1);
    for (uint64_t i = 0; i < KEYS; i++) {
        struct weir__hash h = weir__hash_key(secrets, 5, (struct weir_key){ key, write(key, i) });
        tags[i] = h.tag;
        high[h.place >> 52]++;                         /* chooses the group */
        low[h.place & 255]++;                          /* chooses the slot in it */
        both[(h.place >> 58) << 6 | (h.place & 63)]++; /* one tells nothing about the other */
        cross[(h.place >> 58) << 6 | (h.tag & 63)]++;
    }
    if (count_doubles(tags, KEYS) != 0)
        fail_msg("%s: two keys have one tag", family);
    expect_even(family, "high bits of places", high, 4096);
    expect_even(family, "low bits of places", low, 256);
    expect_even(family, "high and low bits of places together", both, 4096);
    expect_even(family, "places and tags together", cross, 4096);
    free(tags);
    free(high);
    free(low);
    free(both);
    free(cross);
}

TEST(test_million_keys_have_a_million_tags_and_even_places)
{
    for (size_t i = 0; i < FEWER(COUNT_OF(families)); i++)
        check_spread(families[i].name, families[i].write);
}

/* Every bit of a key moves about half of the bits of tag and place. */
TEST(test_every_bit_moves_half)
{
    uint64_t seed = 9, secrets[WEIR__HASH_SECRETS];

    make_secrets(secrets, 1);
    for (size_t len = 1; len <= 40; len += 3)
        for (size_t bit = 0; bit < 8 * len; bit++) {
            int64_t tag = 0, place = 0;
            for (int round = 0; round < 256; round++) {
                unsigned char key[40];
                for (size_t i = 0; i < len; i++)
                    key[i] = (unsigned char)random64(&seed);
                struct weir__hash a = weir__hash_key(secrets, 0, (struct weir_key){ key, len });
                key[bit / 8] ^= (unsigned char)(1 << bit % 8);
                struct weir__hash b = weir__hash_key(secrets, 0, (struct weir_key){ key, len });
                tag += __builtin_popcountll(a.tag ^ b.tag);
                place += __builtin_popcountll(a.place ^ b.place);
            }
            assert_in_range(tag, 256 * 28, 256 * 36);
            assert_in_range(place, 256 * 28, 256 * 36);
        }
}

/* ------------------------------------------------------- salts and secrets ---- */

TEST(test_salts_and_secrets_separate)
{
    enum { OTHERS = 64 };
    uint64_t tags[3 * OTHERS * 4], places[3 * OTHERS * 4], seed = 4;
    static const char long_key[] =
        "a key of more than a hundred and twenty-eight bytes goes another way, so here is "
        "one that is long enough to go there: it has no end, or hardly any";
    static const char *const keys[] = { "", "user", "0123456789abcdef0", long_key };
    size_t n = 0;
    for (size_t k = 0; k < 4; k++)
        for (uint64_t i = 0; i < OTHERS; i++) {
            struct weir__hash h[] = {
                hash_with(1, i, keys[k], strlen(keys[k])), /* salts that differ by little */
                hash_with(1, random64(&seed), keys[k], strlen(keys[k])),
                hash_with(100 + i, 0, keys[k], strlen(keys[k])), /* other secrets */
            };
            for (size_t j = 0; j < 3; j++, n++) {
                tags[n] = h[j].tag;
                places[n] = h[j].place;
            }
        }
    assert_int_equal(count_doubles(tags, n), 0);
    assert_int_equal(count_doubles(places, n), 0);
}

TEST(test_every_secret_counts)
{
    unsigned char
        key[112 + 16]; /* the longest that is not chained: every pair of secrets has a part */
    uint64_t secrets[WEIR__HASH_SECRETS];

    memset(key, 'q', sizeof(key));
    make_secrets(secrets, 1);
    struct weir__hash whole = weir__hash_key(secrets, 0, (struct weir_key){ key, sizeof(key) });
    for (size_t i = 0; i < WEIR__HASH_SECRETS; i++) {
        secrets[i] ^= 1;
        struct weir__hash h = weir__hash_key(secrets, 0, (struct weir_key){ key, sizeof(key) });
        assert_true(h.tag != whole.tag || h.place != whole.place);
        secrets[i] ^= 1;
    }
}

/* ----------------------------------------------------------- random bytes ---- */

TEST(test_random_fill_fills_just_what_it_is_given)
{
    unsigned char a[1000], b[1000];
    unsigned seen = 0;

    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));
    assert_int_equal(weir__random_fill(a, 0), 0);
    assert_int_equal(a[0], 0);
    assert_int_equal(weir__random_fill(a + 1, 998), 0);
    assert_int_equal(weir__random_fill(b + 1, 998), 0);
    assert_int_equal(a[0] | a[999] | b[0] | b[999], 0);
    assert_memory_not_equal(a, b, sizeof(a));
    for (size_t i = 900; i < 999; i++) /* to the very end */
        seen |= a[i];
    assert_int_equal(seen, 255);
}
