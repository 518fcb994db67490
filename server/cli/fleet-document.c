/* fleet-document.c -- the commands on the rules of a fleet. */
#include "server/cli/fleet-document.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/redis/trouble.h"
#include "server/base/complain.h"

#define ASK_MAX (5 * WEIR_SECOND)

static struct weir_key key_of(const char *text)
{
    return (struct weir_key){ text, strlen(text) };
}

int weir__shared_open(struct weir__shared *f, const char *command,
                      const struct weir__shared_options *o)
{
    const char *fleet = o->fleet ? o->fleet : "default";

    *f = (struct weir__shared){ .fleet = key_of(fleet), .document = key_of(WEIR__CENTRE_RULES) };
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
    return weir__complain(f->asker.command, "Redis %s: %s",
                          f->asker.outcome == WEIR__REDIS_UNKNOWN
                              ? "did not answer, and may have carried it out"
                              : weir__redis_trouble(f->asker.why),
                          f->asker.why);
}

int weir__shared_ask(struct weir__shared *f, const struct weir__text *words, size_t n,
                     struct weir__centre_list *out)
{
    struct weir__redis_script script;
    struct weir__redis_ask ask;
    struct weir__text why;

    weir__centre_ask(f->fleet, f->document, words, n, &script, &ask);
    bool answered = weir__asker_ask(&f->asker, &ask);
    weir__redis_ask_free(&ask);
    if (!answered)
        return complain_of(f);
    if (weir__centre_list(out, f->asker.reply.bytes, &why))
        return WEIR__GO_ON;
    return weir__complain(f->asker.command, "Redis%s: %.*s",
                          weir__redis_is_weir(why) ? " is a weir serve, and no Redis" : "",
                          (int)why.len, why.bytes);
}

int weir__shared_get(struct weir__shared *f, int64_t version, struct weir__centre_version *out)
{
    struct weir__centre_list list;
    char number[24];

    *out = (struct weir__centre_version){ .number = 0 };
    snprintf(number, sizeof(number), "%" PRId64, version);
    int code = weir__shared_ask(
        f, (struct weir__text[]){ WEIR__CENTRE_TEXT("get"), WEIR__CENTRE_TEXT(number) }, 2, &list);
    if (code == WEIR__GO_ON && !weir__centre_version(&list, out))
        return weir__complain(f->asker.command, "Redis: a reply that makes no sense");
    return code;
}

/* ---------------------------------------------------------------- status ---- */

int weir__shared_status(struct weir__shared *f, struct weir_fleet_status *out)
{
    struct weir__centre_list list = { 0 };
    int code = weir__shared_ask(f, &WEIR__CENTRE_TEXT("list"), 1, &list);

    if (code == WEIR__GO_ON) {
        weir__centre_status_versions(out, &list);
        code = weir__shared_ask(f, &WEIR__CENTRE_TEXT("nodes"), 1, &list);
    }
    if (code == WEIR__GO_ON)
        weir__centre_status_nodes(out, &list);
    return code;
}

void weir__shared_say_none(FILE *to, const struct weir__shared *f,
                           const struct weir_fleet_status *s)
{
    if (s->runs > 0)
        fprintf(to,
                "Redis has no rules, and nodes run version %" PRId64
                ": it has lost its data. weir fleet rules set FILE --base 0 brings them back; "
                "without the file, take a node's copy: weir-fleet-NAME-rules beside its table",
                s->runs);
    else
        fprintf(to, "the fleet '%s' has no rules yet", (const char *)f->fleet.bytes);
}

int weir__shared_no_rules(struct weir__shared *f)
{
    struct weir_fleet_status status;
    int code = weir__shared_status(f, &status);

    if (code != WEIR__GO_ON)
        return code;
    fprintf(stderr, "weir %s: ", f->asker.command);
    weir__shared_say_none(stderr, f, &status);
    fputc('\n', stderr);
    return WEIR__EXIT_NO;
}

/* ------------------------------------------------------------------- put ---- */

/* Cron and units of systemd often have no USER. */
static void name_author(char *out, size_t size)
{
    const struct passwd *found = getenv("USER") ? NULL : getpwuid(getuid());
    const char *user = found ? found->pw_name : getenv("USER");
    char host[65] = "", number[24];

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = 0;
    snprintf(number, sizeof(number), "%lu", (unsigned long)getuid());
    snprintf(out, size, "%s@%s", user ? user : number, host);
}

static int say_result(const struct weir__shared *f, const struct weir__centre_edit *e, bool done,
                      int64_t version)
{
    if (done && version == e->base) {
        printf("unchanged, still version %" PRId64 "\n", version);
        return WEIR__EXIT_OK;
    }
    if (done) {
        printf("version %" PRId64 "%s%s", version, *e->stage ? ", for now on " : "", e->stage);
        if (e->origin)
            printf(", as version %" PRId64, e->origin);
        putchar('\n');
        return WEIR__EXIT_OK;
    }
    if (e->base == version)
        weir__complain(f->asker.command,
                       "version %" PRId64 " is not the one that this change is based on: "
                       "get it and change that",
                       version);
    else if (version == 0)
        weir__complain(f->asker.command,
                       "Redis has no rules, and this change is based on version %" PRId64
                       ": it is another Redis or fleet, or has lost its data; then --base 0 puts "
                       "it in force",
                       e->base);
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

int weir__shared_put(struct weir__shared *f, struct weir__centre_edit *e)
{
    char author[WEIR__CENTRE_AUTHOR];
    struct weir__centre_put put;
    struct weir__centre_list list;

    name_author(author, sizeof(author));
    e->author = author;
    if (!weir__centre_put(&put, e))
        return weir__complain(f->asker.command, "no random numbers");
    int code = weir__shared_ask(f, put.words, WEIR__CENTRE_PUT_WORDS, &list);
    if (code != WEIR__GO_ON)
        return code;
    bool done = weir__centre_number(&list) == 1;
    return say_result(f, e, done, weir__centre_number(&list));
}
