/* verbs.h -- everything the server can be asked, one row each.
 *
 * A row is data: the command over RESP, the method and path over HTTP, the role, the arguments with
 * their kinds and bounds, the answer.  The doors find verbs, read arguments and check roles by it;
 * WEIR.HELP, COMMAND, GET /v1, /openapi.json and the reference page are printed from it.
 *
 *     verb-table.c       the rows
 *     answer-members.c   the members of answers
 *     arguments.c        arguments: one reader for RESP words, JSON members and query parameters
 *     attribute-names.c  which attributes describe the request itself; names of headers
 *     openapi.c          the rows as OpenAPI
 */
#ifndef WEIR_SERVER_SERVE_VERBS_VERBS_H
#define WEIR_SERVER_SERVE_VERBS_VERBS_H

#include "base/base.h"
#include "server/serve/decide/enter.h"
#include "server/serve/serve.h"

struct weir__verb_call;
/* On the loop's thread: the call has its result.  conn NULL: it is gone. */
typedef void weir__call_done(struct weir__conn *conn, void *context);
struct weir__resp_call;
struct weir__http_call;

/* ------------------------------------------------------------ arguments ---- */

enum weir__arg_kind {
    WEIR__ARG_TEXT,       /* min, max: bytes */
    WEIR__ARG_SCALAR,     /* likewise; over HTTP also a number, true or false, as written */
    WEIR__ARG_COUNT,      /* a whole number from min to max, or the word in `choices`: -1 */
    WEIR__ARG_TIME,       /* in ms.  Its member is NAME_ms, or NAME_ns if the verb has a unit */
    WEIR__ARG_CHOICE,     /* one of `choices`; its number is the place there */
    WEIR__ARG_UNIT,       /* the choice ms|ns, of all times */
    WEIR__ARG_SWITCH,     /* over RESP the word alone, over HTTP true or false */
    WEIR__ARG_BODY,       /* a text; over HTTP the body as it is */
    WEIR__ARG_ATTRIBUTES, /* over RESP: the rest, name value ... */
    WEIR__ARG_ENTRIES,    /* over RESP: the rest */
    WEIR__ARG_CHECKS,     /* over HTTP: an array of checks */
};

struct weir__arg {
    const char *name; /* of the JSON member; NULL ends them */
    const char *word; /* over RESP it follows this word; NULL: it has a place of its own */
    enum weir__arg_kind kind;
    bool needed;
    bool resp_optional;  /* though it is needed over HTTP */
    int64_t min, max;    /* max 0: none */
    int64_t otherwise;   /* if it is not given; below 0: none */
    const char *choices; /* "ms|ns"; over RESP the word itself stands for the last */
    const char *header;  /* over HTTP it may come in this one too */
    const char *example; /* JSON */
    const char *text;
};

/* -------------------------------------------------------------- answers ---- */

/* One member, or several of the same kind: "p50_us p90_us"; "[name]": it is not always
 * there; "-name": RESP's list does not have it.
 *
 *     text, bool, count (from 0), integer, moment, object, any, 0..9, a|b|c
 *     [kind]   an array of it
 *     kind?    or null
 *     Name     another schema; with the name "*": its members here
 */
struct weir__field {
    const char *name, *type, *text;
};

struct weir__schema {
    const char *name, *text;
    const struct weir__field *fields; /* ended by a NULL name */
};

extern const struct weir__schema weir__schemas[]; /* ended by a NULL name */

/* ----------------------------------------------------------------- rows ---- */

#define WEIR__ARGS_MAX 9

enum weir__verb_how {
    WEIR__VERB_NOW,     /* at once, on the loop's thread */
    WEIR__VERB_BATCHED, /* RESP gathers them and decides many together */
    WEIR__VERB_WAITS,   /* may be answered later */
    WEIR__VERB_AWAY,    /* on another thread: it reads files, or waits for other changes of rules */
    WEIR__VERB_MANY,    /* RESP answers once for each argument */
};

struct weir__verb {
    const char *command; /* "WEIR.BANS"; NULL: not over RESP */
    const char *method;  /* "GET"; NULL: any */
    const char *path;    /* "/v1/bans"; NULL: not over HTTP */
    uint8_t command_len, path_len;
    const char *id, *tag; /* OpenAPI's operationId and tag */
    enum weir__role role; /* WEIR__ROLE_NONE: even before AUTH */
    enum weir__verb_how how;
    bool foreign;         /* over HTTP the headers are those of another request */
    bool testing;         /* only with --test-clock */
    bool every_attribute; /* also those that no rule can look at */
    const char *answer;   /* a schema; "[Name]", "object", "text": as fields have them */
    const char *statuses; /* beside 200: "400 404 429=Refused"; 401 and 403 come with the role */
    /* The function that does it; or a door's own, where that door does it in another way. */
    void (*run)(struct weir__verb_call *call);
    /* In its place, if it waits for something without a thread.  Anything but WEIR_OK: the call has
     * failed. */
    int (*begin)(struct weir__conn *conn, struct weir__verb_call *call, weir__call_done *done,
                 void *context);
    void (*resp)(struct weir__resp_call *call);
    void (*http)(struct weir__http_call *call);
    const char *usage; /* over RESP, if it cannot come from the arguments */
    int arity;         /* of `usage`, as Redis counts: with the name; -n: n or more */
    const char *summary, *more;
    struct weir__arg args[WEIR__ARGS_MAX + 1];
};

extern const struct weir__verb weir__verbs[]; /* ended by one without a summary */

/* In any case of letters; NULL: there is none. */
const struct weir__verb *weir__verb_by_command(const char *name, size_t len);
/* *path_known: there is such a path, if only for other methods. */
const struct weir__verb *weir__verb_by_path(struct weir__text method, struct weir__text path,
                                            bool *path_known);
/* "key limit [COST n] [NS]"; returns out. */
char *weir__verb_usage(const struct weir__verb *verb, char *out, size_t size);
int weir__verb_arity(const struct weir__verb *verb);     /* as Redis counts */
bool weir__verb_has_unit(const struct weir__verb *verb); /* without one, all times are in ms */
/* The JSON member: "wait_ms" for the time "wait", for others their name. */
struct weir__arg_name {
    char text[32];
};
struct weir__arg_name weir__arg_member(const struct weir__arg *arg);
/* The command as Redis names it in errors: "weir.take". */
struct weir__arg_name weir__verb_small(const struct weir__verb *verb);

void weir__openapi_print(struct weir__buffer *out);

/* ---------------------------------------------------------------- calls ---- */

#define WEIR__CALL_ATTRS 64

struct weir__given {
    struct weir__text text; /* bytes NULL: it was not given */
    int64_t number;         /* COUNT, CHOICE: itself; TIME: in ns; SWITCH: 1 */
    bool ns;                /* the member was NAME_ns */
};

enum weir__answer_kind {
    WEIR__ANSWER_JSON,   /* `out` has it */
    WEIR__ANSWER_OK,     /* over HTTP the schema's only member is true */
    WEIR__ANSWER_BOOL,   /* `number` is the schema's only member; over RESP 0 or 1 */
    WEIR__ANSWER_NUMBER, /* likewise, a number */
    WEIR__ANSWER_TAKEN,
    WEIR__ANSWER_RENEWED,
};

/* One call: the row, the values that were given, and the result.  weir__call_begin sets it up, a
 * reader fills it in, the row's `run` answers, weir__call_end frees it. */
struct weir__verb_call {
    const struct weir__verb *verb;
    struct weir__server *server;
    struct weir__loop *loop; /* NULL: it runs on another thread */
    weir_time now;
    bool http;  /* which door's words messages use */
    bool ns;    /* the unit of its times */
    int status; /* as HTTP has them: 200 to begin with */

    struct weir_attr *attrs; /* given by the caller, or `own_attrs` */
    char *names, *names_end; /* room for names of attributes over HTTP: where the next goes */
    size_t n_attrs, n_entries, entries_room;
    struct weir__text *entries;
    char *scratch;           /* where strings with escapes go; NULL: `room`, or `heap` */
    char *heap, *kept;       /* memory to free */
    struct weir__buffer out; /* JSON; of rules that were refused (422) {"problems":[...]} */
    struct weir__given values[WEIR__ARGS_MAX]; /* in the row's order */

    char message[512]; /* unless it is 2xx: what is wrong and what would be right, one line */
    enum weir__answer_kind answer;
    int64_t number;
    struct {
        struct weir__adhoc_answer answer;
        struct weir__text policy; /* the name of the limit in headers */
        weir_time unit;           /* of the times */
    } taken;
    struct weir__permits permits; /* that were shown */
    struct {
        struct weir__permits permits;
        weir_time lease;
    } renewed;

    struct weir_attr own_attrs[WEIR__CALL_ATTRS];
    char own_names[(WEIR__CALL_ATTRS + 1) * 64];
    char room[1024];
};

void weir__call_begin(struct weir__verb_call *call, const struct weir__verb *verb,
                      struct weir__loop *loop, bool http);
void weir__call_end(struct weir__verb_call *call);

/* Readers.  False: `status` and `message` say what is wrong.  Values point into the input. */
bool weir__call_words(struct weir__verb_call *call, const struct weir__text *words, size_t n);
bool weir__call_json(struct weir__verb_call *call,
                     struct weir__text body); /* does not ask for needed */
bool weir__call_member(struct weir__verb_call *call, struct weir__text name,
                       struct weir__text value);
bool weir__call_whole(struct weir__verb_call *call); /* are those there that are needed? */
/* Copies the values, with a NUL behind each; false: no memory. */
bool weir__call_keep(struct weir__verb_call *call);

static inline bool weir__call_given(const struct weir__verb_call *call, size_t i)
{
    return call->values[i].text.bytes != NULL;
}

/* A text that somebody sent, for a message: in quotes, not too long, and nothing in it that a
 * terminal obeys. */
#define WEIR__SHOWN(span) (weir__quote((span).bytes, (span).len).text)

/* Returns false. */
__attribute__((format(printf, 3, 4))) bool weir__call_fail(struct weir__verb_call *call, int status,
                                                           const char *format, ...);
bool weir__call_no_memory(struct weir__verb_call *call);
/* After a function that returned a weir_code. */
bool weir__call_fail_code(struct weir__verb_call *call, int code, const struct weir_error *error);

/* Over RESP: does this word announce an argument, such as COST 5, or the attributes? */
bool weir__verb_announces(const struct weir__verb *verb, struct weir__text word);

/* header.X-Plan is header.x-plan. */
void weir__attribute_lower(char *name, size_t len);
/* ip, uri, method, host, scheme, header.*: attributes that describe a request at every door. */
bool weir__attribute_describes(struct weir__text name);

#endif
