/* fleet-document.h -- the commands on the rules of a fleet, a document: options, asks, answers. */
#ifndef WEIR_SERVER_FLEET_DOCUMENT_H
#define WEIR_SERVER_FLEET_DOCUMENT_H

#include "cluster/fleet/centre.h"
#include "server/cli/ask-redis.h"
#include "wire/resp-reply.h"

struct weir__shared_options {
    const char *redis, *fleet;
    bool json;
};

#define WEIR__SHARED_ROWS(in)                                                                   \
    WEIR__OPTION(in, "redis", 'r', TEXT, common.redis, 0, "URL",                                \
                 "the fleet's Redis (WEIR_REDIS)"),                                             \
        WEIR__OPTION(in, "fleet", 'f', TEXT, common.fleet, 0, "NAME", "which fleet (default)"), \
        WEIR__OPTION(in, "json", 'j', SWITCH, common.json, 0, NULL, "print JSON")

struct weir__shared {
    struct weir__asker asker;
    struct weir_key fleet, document;
};

/* Returns WEIR__GO_ON, or an exit code after a complaint. */
int weir__shared_open(struct weir__shared *fleet, const char *command,
                      const struct weir__shared_options *options);
void weir__shared_close(struct weir__shared *fleet);

/* Asks centre.lua: the words are texts.  *head is the list that it answered, *at its first member.
 * Returns WEIR__GO_ON, or an exit code after a complaint. */
int weir__shared_ask(struct weir__shared *fleet, const struct weir__text *words, size_t n,
                     struct weir__resp_value *head, const char **at);

#define WEIR__SHARED_TEXT(text) ((struct weir__text){ (text), strlen(text) })

/* One version of the document. */
struct weir__version {
    int64_t number, time_us, origin; /* origin: it was this one's text that came back; 0: none */
    struct weir__text author, note, text;
    int64_t edit;
};
/* 0: the newest, -1: the one for all nodes.  WEIR__GO_ON and a number of 0: there is none.  Its
 * texts are good until the next ask. */
int weir__shared_get(struct weir__shared *fleet, int64_t version, struct weir__version *out);

/* A change on top of `base`. */
struct weir__edit {
    int64_t base, origin;
    int64_t base_edit; /* that made the base; -1: any */
    const char *note, *stage;
    struct weir__text text;
};
/* Says what came of it, and returns the exit code. */
int weir__shared_put(struct weir__shared *fleet, const struct weir__edit *edit);

#endif
