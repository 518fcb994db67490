/* member-shares.h -- a node's membership in a fleet, and its part of every limit: a pure step,
 * without sockets and clock.
 *
 *     (member, event, now) -> (member', the beat to send)
 *
 * The driver sends what the step says to member-shares.lua, one ask at a time, brings back the
 * answer or the news that there is none, and comes again at `due`.  What the rest of a node needs
 * to know is weir__member_part: "my part is p until t".
 *
 * A part is in millionths of a limit.  The sum of the parts in force on all nodes is at most 1 at
 * any time: under joins, crashes, partitions, late and doubled messages, and failovers that lose
 * writes.  Not while two masters answer at the same time (a master that does not know yet that it
 * was replaced), and not if Redis's clock jumps ahead by less than 2 beats again and again.
 *
 *     3 beats        after the last accepted answer was asked for, less 1/16, the part ends; a dead
 *                    node's part is free 3 beats and 1/16 after Redis last heard it, and in force
 *                    elsewhere within 2 beats more: about 1 s at beats of 200 ms
 *     5 beats        after a failover or a silence of 2 beats, nobody's part grows
 */
#ifndef WEIR_CLUSTER_FLEET_MEMBER_SHARES_H
#define WEIR_CLUSTER_FLEET_MEMBER_SHARES_H

#include "weir.h"
#include "wire/buffer.h"
#include "wire/text.h"

#define WEIR__PART_ONE      1000000
#define WEIR__MEMBER_BEAT   (200 * WEIR_MILLISECOND)
#define WEIR__MEMBER_DRIFT  16 /* of 3 beats one part is left for clocks that differ in speed */
#define WEIR__WEIGHT_MAX    1000000
#define WEIR__MEMBER_ID_MAX 64

struct weir__member {
    /* The driver's */
    weir_time beat; /* between two beats; the same on all nodes */
    int64_t weight; /* 1 and more */
    int64_t want;   /* the part it could use; WEIR__PART_ONE: as much as it can get */
    /* Set by the step */
    int64_t part;         /* in force before `until` */
    weir_time until, due; /* due: to come again, with WEIR__MEMBER_TIME */
    int64_t seq;
    weir_time sent;    /* of the beat that is under way */
    bool asking, left; /* there is one; it has left, and beats no more */
    int64_t members;   /* as of the last answer */
    bool learning;
};

struct weir__member_answer {
    int64_t offer; /* -1: a later beat is known */
    int64_t members, granted;
    bool learning;
    int64_t note; /* the number of the last (bans-and-resets.h) */
};

struct weir__member_event {
    enum {
        WEIR__MEMBER_TIME,   /* it is due, or perhaps not; also to begin */
        WEIR__MEMBER_ANSWER, /* to the beat that is under way */
        WEIR__MEMBER_FAILED, /* it has no answer, and may have been carried out or not */
        WEIR__MEMBER_LEAVE,  /* the part is over at once, and free for others */
    } kind;
    struct weir__member_answer answer;
};

struct weir__member_send {
    enum { WEIR__MEMBER_NOTHING, WEIR__MEMBER_BEATS, WEIR__MEMBER_LEAVES } verb;
    int64_t seq, part;
    weir_time timeout; /* of the ask: FAILED is due then */
};

struct weir__member_send weir__member_step(struct weir__member *member,
                                           const struct weir__member_event *event, weir_time now);

/* The part in force; 0 when its time is over. */
int64_t weir__member_part(const struct weir__member *member, weir_time now);

/* member-shares-words.c -- what member-shares.lua is asked, and what it answers. */
#define WEIR__MEMBER_WORDS 12
/* As bulk strings of RESP: NUMKEYS KEY ... ARG ...; the second is the first key. */
void weir__member_words(const struct weir__member *member, const struct weir__member_send *send,
                        struct weir_key fleet, const char *id, struct weir__buffer *out);
/* False: it is an error or nonsense, and *why says which. */
bool weir__member_reply(struct weir__member_answer *out, struct weir__text reply,
                        struct weir__text *why);

extern const char weir__lua_member_shares[];
extern const size_t weir__lua_member_shares_len;

#endif
