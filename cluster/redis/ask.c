/* ask.c -- one command for Redis. */
#include "cluster/redis/ask.h"

#include <string.h>

#include "wire/resp.h"

struct weir__redis_script weir__redis_script(const char *text, size_t len)
{
    struct weir__redis_script script = { .text = { text, len } };

    weir__sha1_hex(script.sha, text, len);
    return script;
}

void weir__redis_ask_word(struct weir__redis_ask *ask, const void *bytes, size_t len)
{
    weir__buffer_bulk(&ask->words, bytes, len);
    ask->n_words++;
}

bool weir__redis_ask_texts(struct weir__redis_ask *ask, const char *const *words)
{
    ask->words.len = ask->n_words = 0;
    for (; *words; words++)
        weir__redis_ask_word(ask, *words, strlen(*words));
    return !ask->words.failed;
}

void weir__redis_ask_free(struct weir__redis_ask *ask)
{
    weir__buffer_free(&ask->words);
}

static void put_count(struct weir__buffer *to, size_t n)
{
    char *at = weir__buffer_room(to, WEIR__RESP_NUMBER_MAX);

    if (at)
        to->len = (size_t)(weir__resp_put_header(at, '*', (int64_t)n) - to->bytes);
}

void weir__redis_ask_put(const struct weir__redis_ask *ask, struct weir__buffer *to)
{
    const struct weir__redis_script *script = ask->script;

    if (ask->own.by_module) {
        put_count(to, ask->n_module);
        weir__buffer_add(to, ask->module.bytes, ask->module.len);
        return;
    }
    put_count(to, ask->n_words + (script ? 2 : 0));
    if (script && ask->own.whole_script) {
        weir__buffer_bulk(to, "EVAL", 4);
        weir__buffer_bulk(to, script->text.bytes, script->text.len);
    } else if (script) {
        weir__buffer_bulk(to, "EVALSHA", 7);
        weir__buffer_bulk(to, script->sha, WEIR__SHA1_HEX);
    }
    weir__buffer_add(to, ask->words.bytes, ask->words.len);
}
