/* word-set.c -- is a value one of a hundred thousand words?
 *
 *     slots   open addressing, at most two thirds full: part of the word's hash, and where its
 *             bytes are
 *     bytes   the words in a row, each after its length
 *
 * Looking up a word that is not in the set nearly always costs one cache line: eight slots fit in a
 * line, and its tag matches another's once in four billion.  A word in the set costs a second line,
 * for its bytes: the hash alone is not trusted.
 *
 * The hash is keyed with secrets of this set: clients choose values (their user agent), but cannot
 * choose colliding ones.
 */
#include "match/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define WORDS_MAX ((size_t)1 << 30)

struct slot {
    uint32_t tag;
    uint32_t at; /* in bytes; 0: no word */
};

struct weir__word_set {
    size_t n; /* words, each once */
    size_t mask;
    struct slot *slots;
    unsigned char *bytes; /* the first is not used, so that 0 is no word's place */
    uint64_t secrets[WEIR__HASH_SECRETS];
};

static bool is_word_at(const struct weir__word_set *set, uint32_t at, const char *word, size_t len)
{
    uint32_t length;

    memcpy(&length, set->bytes + at, sizeof(length));
    /* `word` may be NULL if it is empty. */
    return length == len && (len == 0 || memcmp(set->bytes + at + sizeof(length), word, len) == 0);
}

/* The slot where the word is, or the empty one where it would be. */
static inline struct slot *find_slot(const struct weir__word_set *set, const char *word, size_t len,
                                     uint32_t *tag)
{
    struct weir__hash hash = weir__hash_key(set->secrets, 0, (struct weir_key){ word, len });
    size_t i = hash.place & set->mask;

    *tag = (uint32_t)hash.tag;
    while (set->slots[i].at != 0 &&
           (set->slots[i].tag != *tag || !is_word_at(set, set->slots[i].at, word, len)))
        i = (i + 1) & set->mask;
    return &set->slots[i];
}

bool weir__word_set_has(const struct weir__word_set *set, const char *word, size_t len)
{
    uint32_t tag;

    return set->n > 0 && find_slot(set, word, len, &tag)->at != 0;
}

/* Writes the word at `at`, unless the set has it already; returns where the next one goes. */
static size_t add(struct weir__word_set *set, const char *word, size_t at)
{
    uint32_t tag, length = (uint32_t)strlen(word);
    struct slot *slot = find_slot(set, word, length, &tag);

    if (slot->at != 0)
        return at;
    *slot = (struct slot){ tag, (uint32_t)at };
    memcpy(set->bytes + at, &length, sizeof(length));
    memcpy(set->bytes + at + sizeof(length), word, length);
    set->n++;
    return at + sizeof(length) + length;
}

static size_t count_bytes(const char *const *words, size_t n)
{
    size_t bytes = 1;

    for (size_t i = 0; i < n; i++)
        bytes += sizeof(uint32_t) + strlen(words[i]);
    return bytes;
}

static bool allocate(struct weir__word_set *set, size_t n, size_t bytes)
{
    size_t slots = 4;

    while (slots < n + n / 2)
        slots *= 2;
    set->mask = slots - 1;
    set->slots = calloc(slots, sizeof(*set->slots));
    set->bytes = malloc(bytes);
    return set->slots != NULL && set->bytes != NULL;
}

int weir__word_set_create(struct weir__word_set **out, const char *const *words, size_t n,
                          struct weir_error *error)
{
    size_t bytes = n <= WORDS_MAX ? count_bytes(words, n) : SIZE_MAX, at = 1;

    if (bytes > UINT32_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "%zu words are too many for a list: at most %zu, and 4 GB together", n,
                          WORDS_MAX);
    struct weir__word_set *set = calloc(1, sizeof(*set));
    if (set == NULL || !allocate(set, n, bytes)) {
        weir__word_set_destroy(set);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a list of %zu words", n);
    }
    if (weir__random_fill(set->secrets, sizeof(set->secrets)) != 0) {
        weir__word_set_destroy(set);
        return weir__fail_errno(error, "cannot read random bytes for", "a list");
    }
    for (size_t i = 0; i < n; i++)
        at = add(set, words[i], at);
    *out = set;
    return WEIR_OK;
}

void weir__word_set_destroy(struct weir__word_set *set)
{
    if (set == NULL)
        return;
    free(set->slots);
    free(set->bytes);
    free(set);
}
