/* importing.h -- for tests of weir import: a configuration in, rules and notes out. */
#ifndef WEIR_TESTS_UNIT_SERVER_IMPORT_IMPORTING_H
#define WEIR_TESTS_UNIT_SERVER_IMPORT_IMPORTING_H

#include "unit/test.h"

#include "unit/fixture.h"

#include "server/import/import.h"

struct importing {
    struct weir__import import;
    struct weir__buffer out;
    struct weir_error error;
    int code;
};

static inline void importing_end(struct importing *i)
{
    weir__import_clear(&i->import);
    weir__buffer_free(&i->out);
}

static inline void import_text(struct importing *i, const char *text, size_t len)
{
    *i = (struct importing){ 0 };
    i->code = weir__import_nginx(&i->import, "conf", text, len, &i->out, &i->error);
    weir__buffer_add(&i->out, "", 1);
}

/* The limits of a server with these lines, among others of http. */
static inline void import_lines(struct importing *i, const char *http, const char *server)
{
    char text[4096];

    snprintf(text, sizeof(text), "events {}\nhttp {\n%s\nserver {\n%s\n}\n}\n", http, server);
    import_text(i, text, strlen(text));
    if (i->code != WEIR_OK)
        fail_msg("%s", i->error.text);
}

#define ZONE "limit_req_zone $binary_remote_addr zone=one:1m rate=10r/s;"

#endif
