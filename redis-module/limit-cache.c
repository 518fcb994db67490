/* limit-cache.c -- a cache of compiled limits, of a fixed size.
 *
 * A limit has one place, by the hash of its text, and the next one there takes it over.  One that
 * was put out may still be in use by the same command: it is freed when the next command begins.
 * Redis runs one command at a time, so there is no lock.
 */
#include "redis-module/limit-cache.h"

#include <string.h>

#include "redis-module/redis-api.h"

#define PLACES   1024
#define TEXT_MAX 255

static struct limit *cache[PLACES];
static struct limit *gone[64]; /* more than the keys of one command */
static size_t gone_count;

void limits_begin(void)
{
    while (gone_count > 0)
        redis.Free(gone[--gone_count]);
}

void limits_end(void)
{
    limits_begin();
    for (size_t i = 0; i < PLACES; i++) {
        redis.Free(cache[i]);
        cache[i] = NULL;
    }
}

/* Words of eight bytes, the last of which may overlap; of a short text its bytes. */
static uint64_t hash_text(const char *text, size_t len)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t hash = len, word;

    if (len < 8) {
        for (size_t i = 0; i < len; i++)
            hash = (hash ^ (unsigned char)text[i]) * factor;
        return hash ^ hash >> 32;
    }
    const char *last = text + len - 8;
    for (; text < last; text += 8) {
        memcpy(&word, text, sizeof(word));
        hash = (hash ^ word) * factor;
    }
    memcpy(&word, last, sizeof(word));
    hash = (hash ^ word) * factor;
    return hash ^ hash >> 32;
}

static int compile_limit(struct weir_plan *plan, const char *text, size_t len,
                         limit_compile *compile, struct weir_error *error)
{
    char line[TEXT_MAX + 1];
    struct weir_limit limit;

    if (len > TEXT_MAX || memchr(text, '\0', len) != NULL)
        return weir__fail(error, WEIR_INVALID, "a limit is a text of at most %d bytes", TEXT_MAX);
    memcpy(line, text, len);
    line[len] = '\0';
    int code = compile(&limit, line, error);
    if (code == WEIR_OK)
        code = weir__plan_make(plan, &limit, error);
    return code == WEIR_OK ? weir__plan_check_redis(plan, error) : code;
}

static struct limit **place_of(const char *text, size_t len)
{
    return &cache[hash_text(text, len) % PLACES];
}

static bool is_of(const struct limit *limit, const char *text, size_t len, limit_compile *compile)
{
    return limit != NULL && limit->len == len && limit->compile == compile &&
           memcmp(limit->text, text, len) == 0;
}

const struct limit *limits_look(const char *text, size_t len, limit_compile *compile)
{
    const struct limit *limit = *place_of(text, len);

    return is_of(limit, text, len, compile) ? limit : NULL;
}

const struct limit *limits_find(const char *text, size_t len, limit_compile *compile,
                                struct weir_error *error)
{
    struct limit **place = place_of(text, len), *old = *place;
    struct weir_plan plan;

    if (is_of(old, text, len, compile))
        return old;
    if (compile_limit(&plan, text, len, compile, error) != WEIR_OK)
        return NULL;
    struct limit *limit = redis.Alloc(sizeof(*limit) + len);
    limit->plan = plan;
    limit->head = weir__account_head(&plan);
    limit->compile = compile;
    limit->len = len;
    memcpy(limit->text, text, len);
    if (old != NULL)
        gone[gone_count++] = old;
    *place = limit;
    return limit;
}
