/* ask.h -- one command for Redis, and how it ended.
 *
 * The caller owns an ask, and leaves it alone from weir__redis_client_ask until `done` was called,
 * which happens once.
 */
#ifndef WEIR_CLUSTER_REDIS_ASK_H
#define WEIR_CLUSTER_REDIS_ASK_H

#include "cluster/redis/sha1.h"
#include "cluster/redis/slot.h"
#include "weir.h"
#include "wire/buffer.h"
#include "wire/text.h"

/* A Lua script, called by its name; a server that does not know it is sent the text. */
struct weir__redis_script {
    char sha[WEIR__SHA1_HEX + 1];
    struct weir__text text; /* stays the caller's */
};
struct weir__redis_script weir__redis_script(const char *text, size_t len);

enum weir__redis_outcome {
    WEIR__REDIS_ANSWERED, /* the reply says more; it may be an error */
    WEIR__REDIS_UNDONE,   /* Redis has not carried it out, and will not */
    WEIR__REDIS_UNKNOWN,  /* sent, not answered: perhaps carried out, perhaps still to be */
};

struct weir__redis_answer {
    enum weir__redis_outcome outcome;
    struct weir__text reply; /* one whole value of RESP; good until `done` returns */
    const char *why;         /* not answered: a sentence's end; good until `done` returns */
    bool by_module;          /* the module's form was sent */
    bool maybe_done;         /* an earlier try was lost, and may have been carried out */
};

struct weir__redis_node;
struct weir__redis_conn;

/* Why an ask that was outrun (`losses`) until its deadline is undone: Redis did answer. */
#define WEIR__REDIS_OUTRUN "Redis: others change this key all the time"

struct weir__redis_ask {
    /* Set by the caller; the words by weir__redis_ask_word */
    const struct weir__redis_script *script; /* or NULL: the words are the whole command */
    struct weir__buffer words;               /* encoded; of a script: NUMKEYS KEY... ARG... */
    size_t n_words;
    /* The same for a server that has Weir's module, or none; stays the caller's */
    struct weir__buffer module;
    size_t n_module;
    int slot;           /* of its keys, or WEIR__REDIS_ANY_SLOT */
    weir_time deadline; /* a point: `done` is called no later than this */
    int losses;         /* others were faster so often: it rests before it is sent */
    bool repeatable;    /* to be done twice is harmless: it is sent again if its answer was lost */
    struct weir__redis_node *only; /* this node, wherever its slot is; NULL: not set */
    void (*done)(struct weir__redis_ask *ask, const struct weir__redis_answer *answer);
    void *context;

    /* The client's */
    struct {
        enum { WEIR__ASK_NEW, WEIR__ASK_RESTING, WEIR__ASK_QUEUED, WEIR__ASK_SENT } where;
        weir_time due; /* the next moment to look at it */
        size_t at;     /* in the heap of dues */
        struct weir__redis_node *node;
        struct weir__redis_ask *next, *before; /* in the node's queue, or among the homeless */
        struct weir__redis_conn *conn;
        uint64_t number; /* of its reply on that connection */
        int tries;
        bool asking;       /* sent with ASKING */
        bool whole_script; /* the server did not know it */
        bool by_module;    /* sent in the module's form */
        bool maybe_done;   /* an earlier answer was lost */
        char why[120];     /* what it waits for */
    } own;
};

/* Adds a word; out of memory is seen when it is asked. */
void weir__redis_ask_word(struct weir__redis_ask *ask, const void *bytes, size_t len);
/* Replaces the words by strings, up to NULL.  False: no memory. */
bool weir__redis_ask_texts(struct weir__redis_ask *ask, const char *const *words);
/* Frees the words. */
void weir__redis_ask_free(struct weir__redis_ask *ask);

/* The command as it is sent. */
void weir__redis_ask_put(const struct weir__redis_ask *ask, struct weir__buffer *to);

#endif
