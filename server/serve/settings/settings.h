/* settings.h -- the settings of `weir serve`: one table (settings.c) for the file, the environment,
 * the command line and the help.
 *
 * A setting is --NAME on the command line, WEIR_NAME in the environment (capitals, _ for -), and
 * `NAME: VALUE` in the file that --config names; the first of these that has it counts, then the
 * default.  Secrets are not taken from the command line, where everybody on the host can read them.
 */
#ifndef WEIR_SERVER_SERVE_SETTINGS_SETTINGS_H
#define WEIR_SERVER_SERVE_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/buffer.h"
#include "server/base/command.h"
#include "weir.h"

struct weir__settings {
    const char *config;
    const char *resp; /* addresses, separated by commas: HOST:PORT, [HOST6]:PORT or a unix socket's
                         path (has a '/'); "": this door is closed */
    const char *http;
    int64_t socket_mode;                   /* permissions of unix sockets */
    const char *rules;                     /* a file; "": none */
    const char *table;                     /* a file; "" with memory */
    int64_t table_mode;                    /* of a new one; 0: the default */
    const char *table_owner, *table_group; /* of a new one; "": as the system gives them */
    bool memory;                           /* no table file: nothing on disk */
    int64_t threads;                       /* 0: one per core */
    int64_t keys;                          /* room in the table */
    int64_t limiters;                      /* likewise */
    bool keys_given;                       /* `keys` is not the default */
    const char *tls_certificate, *tls_key; /* PEM files; "": no TLS */
    const char *
        tls_client_ca; /* PEM file: clients must show a certificate signed by it; "": none needed */
    const char *check_token, *admin_token; /* secrets; "": none */
    const char *check_token_file, *admin_token_file,
        *webhook_token_file;     /* files with a secret in the first line; read already */
    int64_t auth_guesses;        /* wrong tokens per minute and address; 0: any number */
    const char *trusted_proxies; /* CIDR, separated by commas: believed about forwarded requests */
    int64_t connections_max;
    int64_t request_max; /* bytes of one request */
    int64_t output_max;  /* bytes that wait for a subscriber that does not read */
    weir_time idle;      /* until a silent connection is closed; 0: never */
    weir_time patience;  /* for a request to arrive whole */
    weir_time drain;     /* for requests under way after SIGTERM */
    const char *fleet;   /* the URL of its Redis, which may hold a password; "": none */
    const char *fleet_name, *fleet_node; /* "": the default */
    int64_t fleet_weight, fleet_nodes;
    weir_time ask_id_lifetime;
    int64_t ask_ids;                /* remembered at the most */
    weir_time reservation_lifetime; /* the longest */
    int64_t adhoc_limits;           /* different limits that clients may ask for by themselves */
    int64_t top;                    /* keys that the sketch of limited keys follows */
    const char *events_log;         /* file of JSON lines; "-": standard output; "": none */
    const char *webhook;            /* http:// or https:// URL; "": none */
    const char *webhook_token;      /* secret: sent as a bearer token */
    bool watch;                     /* look whether the rule file has changed */
    bool test_clock;                /* time stands still and is set by WEIR.CLOCK; for tests */
};

#define WEIR__THREADS_MAX 64

/* The table of them, as the options of `weir serve`; --print-settings is the last row. */
extern const struct weir__option weir__settings_rows[];

/* Reads them all.  `self` is serve's row, `argv` the words after "serve".  WEIR__GO_ON, or a code
 * to exit with after the help or a complaint; then *out is untouched. */
int weir__settings_read(const struct weir__command *self, struct weir__settings *out, int argc,
                        char **argv);
void weir__settings_free(struct weir__settings *settings);

/* All of them as one JSON object, by their names; for a secret only whether it is set (true or
 * false). */
void weir__settings_json(const struct weir__settings *settings, struct weir__buffer *out);

/* As many as the settings say, or one per core that this process may use. */
size_t weir__settings_threads(const struct weir__settings *settings);

#endif
