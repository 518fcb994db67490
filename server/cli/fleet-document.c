/* fleet-document.c -- the commands on the rules of a fleet. */
#include "server/cli/fleet-document.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/complain.h"
#include "wire/decimal.h"

#define ASK_MAX (5 * WEIR_SECOND)

static struct weir_key key_of(const char *text)
{
    return (struct weir_key){ text, strlen(text) };
}

int weir__shared_open(struct weir__shared *f, const char *command,
                      const struct weir__shared_options *o)
{
    const char *fleet = o->fleet ? o->fleet : "default";

    *f = (struct weir__shared){ .fleet = key_of(fleet), .document = key_of("rules") };
    if (!weir__centre_is_name(fleet))
        return weir__complain(command, "names of fleets are letters, digits, '.', '_' and '-'");
    return weir__asker_open(&f->asker, command, o->redis, ASK_MAX);
}

void weir__shared_close(struct weir__shared *f)
{
    weir__asker_close(&f->asker);
}

static int complain_of(const struct weir__shared *f)
{
    return weir__complain(f->asker.command, "%s: %s",
                          f->asker.outcome == WEIR__REDIS_UNKNOWN
                              ? "Redis did not answer, and may have carried it out"
                              : "Redis does not answer",
                          f->asker.why);
}

int weir__shared_ask(struct weir__shared *f, const struct weir__text *words, size_t n,
                     struct weir__resp_value *head, const char **at)
{
    struct weir__redis_script script = weir__redis_script(weir__lua_centre, weir__lua_centre_len);
    struct weir__redis_ask ask = { .script = &script, .repeatable = true };
    struct weir__buffer key = { 0 };

    weir__centre_key(f->fleet, f->document, &key);
    ask.slot = key.failed ? WEIR__REDIS_ANY_SLOT : weir__redis_slot(key.bytes, key.len);
    weir__buffer_free(&key);
    ask.n_words = weir__centre_words(f->fleet, f->document, words, n, &ask.words);
    bool answered = weir__asker_ask(&f->asker, &ask);
    weir__redis_ask_free(&ask);
    if (!answered)
        return complain_of(f);
    *at = weir__resp_value(f->asker.reply.bytes, head);
    if (head->kind == '*')
        return WEIR__GO_ON;
    return weir__complain(f->asker.command, "Redis: %.*s",
                          (int)(head->kind == '-' ? head->text.len : 0), head->text.bytes);
}

static int nonsense(const struct weir__shared *f)
{
    return weir__complain(f->asker.command, "Redis: a reply that makes no sense");
}

int weir__shared_get(struct weir__shared *f, int64_t version, struct weir__version *out)
{
    struct weir__resp_value head, v[7];
    char number[24];
    const char *at;

    *out = (struct weir__version){ .number = 0 };
    snprintf(number, sizeof(number), "%" PRId64, version);
    int code = weir__shared_ask(
        f, (struct weir__text[]){ WEIR__SHARED_TEXT("get"), WEIR__SHARED_TEXT(number) }, 2, &head,
        &at);
    if (code != WEIR__GO_ON || head.n == 0)
        return code;
    for (size_t i = 0; head.n == 7 && i < 7; i++) {
        at = weir__resp_value(at, &v[i]);
        if (v[i].kind != (i < 3 ? ':' : '$'))
            return nonsense(f);
    }
    int64_t edit;
    if (head.n != 7 || !weir__count_parse(v[6].text.bytes, v[6].text.len, &edit))
        return nonsense(f);
    *out = (struct weir__version){ v[0].integer, v[1].integer, v[2].integer, v[3].text,
                                   v[4].text,    v[5].text,    edit };
    return WEIR__GO_ON;
}

/* ------------------------------------------------------------------- put ---- */

/* Without control characters: one separates the fields in Redis. */
static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = ' ';
}

static void name_author(char *out, size_t size)
{
    char host[65] = "";
    const char *user = getenv("USER");

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = 0;
    snprintf(out, size, "%s@%s", user ? user : "?", host);
    clean(out);
}

static int say_result(const struct weir__shared *f, const struct weir__edit *e, bool done,
                      int64_t version)
{
    if (done) {
        printf("version %" PRId64 "%s%s\n", version, *e->stage ? ", for now on " : "", e->stage);
        return WEIR__EXIT_OK;
    }
    if (e->base == version)
        weir__complain(f->asker.command,
                       "version %" PRId64 " is another than the one that this change is based on: "
                       "get it and change that",
                       version);
    else if (e->base == 0)
        weir__complain(f->asker.command,
                       "version %" PRId64
                       " is there: get it and change that, or say --base %" PRId64 " to replace it",
                       version, version);
    else
        weir__complain(f->asker.command,
                       "version %" PRId64 " is there, and this change is based on %" PRId64
                       ": weir fleet rules get >FILE, and change that",
                       version, e->base);
    return WEIR__EXIT_NO;
}

int weir__shared_put(struct weir__shared *f, const struct weir__edit *e)
{
    char base[24], base_edit[24] = "", origin[24], edit[24], author[128], note[256];
    uint64_t random;
    struct weir__resp_value head, done, version;
    const char *at;

    if (weir__random_fill(&random, sizeof(random)) != 0)
        return weir__complain(f->asker.command, "no random numbers");
    snprintf(base, sizeof(base), "%" PRId64, e->base);
    snprintf(origin, sizeof(origin), "%" PRId64, e->origin);
    snprintf(edit, sizeof(edit), "%" PRIu64, random >> 1);
    if (e->base_edit >= 0)
        snprintf(base_edit, sizeof(base_edit), "%" PRId64, e->base_edit);
    snprintf(note, sizeof(note), "%s", e->note ? e->note : "");
    clean(note);
    name_author(author, sizeof(author));
    struct weir__text words[] = { WEIR__SHARED_TEXT("put"),    WEIR__SHARED_TEXT(base),
                                  WEIR__SHARED_TEXT(edit),     WEIR__SHARED_TEXT(author),
                                  WEIR__SHARED_TEXT(note),     WEIR__SHARED_TEXT(e->stage),
                                  WEIR__SHARED_TEXT(origin),   e->text,
                                  WEIR__SHARED_TEXT(base_edit) };
    int code = weir__shared_ask(f, words, 9, &head, &at);
    if (code != WEIR__GO_ON)
        return code;
    if (head.n != 2)
        return nonsense(f);
    weir__resp_value(weir__resp_value(at, &done), &version);
    return say_result(f, e, done.integer == 1, version.integer);
}
