/* rules-versions-words.h -- asks to rules-versions.lua about a document of a fleet (its rules), and
 * the answers.  Nothing here waits: `weir fleet`, the server and the agent each ask in their own
 * way. */
#ifndef WEIR_CLUSTER_FLEET_RULES_VERSIONS_WORDS_H
#define WEIR_CLUSTER_FLEET_RULES_VERSIONS_WORDS_H

#include "cluster/fleet/rules-follower.h"
#include "cluster/redis/ask.h"

#define WEIR__VERSIONS_TEXT(text) ((struct weir__text){ (text), strlen(text) })

/* ------------------------------------------------------------------ words ---- */

/* Whether it can be the name of a fleet, a document or a node. */
bool weir__fleet_is_name(const char *text);
/* The words of a script, as bulk strings of RESP: NUMKEYS KEY ... ARG ...; the second is the first
 * key.  Returns their number.  `arguments` are the verb and what follows. */
size_t weir__versions_words(struct weir_key fleet, struct weir_key document,
                            const struct weir__text *arguments, size_t n, struct weir__buffer *out);
/* The key that decides about the slot. */
void weir__versions_key(struct weir_key fleet, struct weir_key document, struct weir__buffer *out);

extern const char weir__lua_rules_versions[];
extern const size_t weir__lua_rules_versions_len;

/* Fills an ask, but for its deadline and what it calls.  `script` must stay as long as it. */
void weir__versions_ask(struct weir_key fleet, struct weir_key document,
                        const struct weir__text *words, size_t n, struct weir__redis_script *script,
                        struct weir__redis_ask *out);

/* ---------------------------------------------------------------- answers ---- */

/* A list that rules-versions.lua answers, value by value; texts point into the reply.  Behind its
 * end, and in place of a value of another kind, there are zeros and empty texts. */
struct weir__versions_list {
    const char *at;
    size_t left;
};
/* False: it is none, and *why is what Redis says instead. */
bool weir__versions_list(struct weir__versions_list *out, const char *reply,
                         struct weir__text *why);
int64_t weir__versions_number(struct weir__versions_list *list);
struct weir__text weir__versions_text(struct weir__versions_list *list);

struct weir__version {
    int64_t number, time_us, origin; /* origin: it was this one's text that came back; 0: none */
    struct weir__text author, note;
    int64_t bytes;
    struct weir__text text; /* of `get` alone, as the edit */
    int64_t edit;
};
/* Of `get`; false: it makes no sense.  A number of 0: there is no such version. */
bool weir__version(struct weir__versions_list *list, struct weir__version *out);
/* Of `list`, behind newest, stage and all; false: that was the last. */
bool weir__versions_next(struct weir__versions_list *list, struct weir__version *out);

/* The first number of `all`: the stage has refused the version. */
#define WEIR__VERSIONS_REFUSED 2
/* Of `all`, behind the 1: what to say if no node may have tried the version; "": its stage has. */
#define WEIR__RULES_WARNING 200
void weir__versions_untried(struct weir__versions_list *list, char warning[WEIR__RULES_WARNING]);

/* ---------------------------------------------------------------- changes ---- */

/* A change on top of `base`. */
struct weir__versions_edit {
    int64_t base, origin;
    int64_t base_edit; /* that made the base; -1: any */
    const char *author, *note, *stage;
    const char *id; /* the same change again has the same; NULL: it is another */
    struct weir__text text;
};

#define WEIR__VERSIONS_PUT_WORDS 9
#define WEIR__VERSIONS_AUTHOR    128
#define WEIR__VERSIONS_NOTE      256

/* The words of `put`, which point into this and into the edit. */
struct weir__versions_put {
    struct weir__text words[WEIR__VERSIONS_PUT_WORDS];
    char base[24], base_edit[24], origin[24], edit[24];
    char author[WEIR__VERSIONS_AUTHOR], note[WEIR__VERSIONS_NOTE];
};
/* False: the host has no random numbers. */
bool weir__versions_put(struct weir__versions_put *out, const struct weir__versions_edit *edit);

#endif
