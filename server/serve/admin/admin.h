/* admin.h -- what an operator can ask of the server: one row each, the same over RESP and HTTP.
 *
 * A row names its command, its HTTP method and path, who may, and its parameters in order.  Over
 * RESP the parameters are the arguments; over HTTP they are members of the JSON body, or of the
 * query.  The answer is one JSON text: an HTTP body, or a bulk string.  COMMAND DOCS and WEIR.HELP
 * are printed from the same rows; openapi.json is written by hand, and a test compares it with
 * them.
 */
#ifndef WEIR_SERVE_ADMIN_H
#define WEIR_SERVE_ADMIN_H

#include "server/serve/serve.h"

#define WEIR__PARAMS_MAX 5

struct weir__param {
    const char *name; /* NULL ends them */
    const char *help;
    bool optional; /* over RESP only the last ones can be */
};

enum weir__rest {
    WEIR__REST_NONE,
    WEIR__REST_ATTRIBUTES, /* name value name value ...; over HTTP an object "attributes" */
    WEIR__REST_ENTRIES,    /* texts; over HTTP an array "entries" */
};

struct weir__admin_call {
    struct weir__server *server;
    weir_time now;
    struct weir__span values[WEIR__PARAMS_MAX]; /* in the row's order; bytes NULL: not given */
    const struct weir__span *rest;
    size_t n_rest;            /* attributes: names and values both count */
    struct weir__buffer *out; /* the JSON text, if all went well; and of rules that were refused
                                 (422) {"problems":[...]} */
    int status; /* as HTTP has them: 200 to begin with; over RESP what is not 2xx is an error */
    char message[512]; /* what was wrong, and what would be right: one line */
};

struct weir__admin {
    const char *command;       /* "WEIR.BANS" */
    const char *method, *path; /* "GET", "/v1/bans" */
    enum weir__role role;
    bool raw_body; /* over HTTP the body is the first parameter, as it is (a rule file) */
    enum weir__rest rest;
    /* Looks at its parameters itself: what is missing or wrong is 400.  Takes long, or may wait for
     * somebody who does: never on a loop's thread, so a call is first made an errand
     * (admin-errand.h). */
    void (*run)(struct weir__admin_call *call);
    const char *summary;
    struct weir__param params[WEIR__PARAMS_MAX + 1];
};

/* Ended by a NULL command. */
extern const struct weir__admin weir__admin_rows[];
const struct weir__admin *weir__admin_by_command(const char *name,
                                                 size_t len); /* whatever the case; NULL: none */
/* *path_known: there is such a path, if only for other methods. */
const struct weir__admin *weir__admin_by_path(const char *method, size_t method_len,
                                              const char *path, size_t path_len, bool *path_known);

__attribute__((format(printf, 3, 4))) void weir__admin_fail(struct weir__admin_call *call,
                                                            int status, const char *format, ...);

#endif
