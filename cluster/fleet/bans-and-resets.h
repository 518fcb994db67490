/* bans-and-resets.h -- what the nodes of a fleet tell each other: bans, bans that were lifted, keys
 * that were reset.  The words of bans-and-resets.lua, and what it answers. */
#ifndef WEIR_CLUSTER_FLEET_BANS_AND_RESETS_H
#define WEIR_CLUSTER_FLEET_BANS_AND_RESETS_H

#include "weir.h"
#include "wire/buffer.h"
#include "wire/resp-reply.h"
#include "wire/text.h"

#define WEIR__NOTE_SPAN_MAX  (WEIR_SECOND * 100 * 366 * 86400) /* numbers of Lua are exact so far */
#define WEIR__NOTES_AT_ONCE  256                               /* in an answer */
#define WEIR__NOTE_RESET     (30 * WEIR_SECOND) /* longer than units that were drawn before live */
#define WEIR__NOTE_WORDS     5                  /* of a note that is told */
#define WEIR__NOTE_VALUES    6                  /* of one that is answered */
#define WEIR__NOTES_WORDS(n) (8 + WEIR__NOTE_WORDS * (n))

struct weir__note {
    char kind; /* 'b': a ban; 'r': a reset */
    struct weir__text rule, key;
    int64_t number, base;
    weir_time span;                                              /* it lasts */
    int64_t strikes;                                             /* of a ban; 0: it was lifted */
    weir_time forget;                                            /* after its end */
    enum { WEIR__NOTE_NEW, WEIR__NOTE_OLD, WEIR__NOTE_NOW } how; /* to be told */
};

/* NUMKEYS KEY ... and what the node has heard; then one note after another. */
void weir__notes_words(struct weir_key fleet, int64_t begun, int64_t heard, int64_t knew,
                       struct weir__buffer *out);
void weir__note_words(const struct weir__note *note, struct weir__buffer *out);

struct weir__notes {
    int64_t begun, last, heard;
    bool lost;
    size_t n;
    const char *at; /* the next note in the reply */
};
/* False: it is an error or nonsense. */
bool weir__notes_reply(struct weir__notes *out, struct weir__text reply);
/* The next of `n`; false: nonsense. */
bool weir__note_next(struct weir__notes *notes, struct weir__note *out);

extern const char weir__lua_bans_and_resets[];
extern const size_t weir__lua_bans_and_resets_len;

#endif
