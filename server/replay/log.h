/* log.h -- access logs, line by line, in every format and packing.
 *
 *     combined   nginx's and Apache's combined and common formats, a virtual host in front or not
 *     json       JSON lines, with a map from fields to attributes
 *
 * Plain, gzip (by content, not by name; several members too) and stdin ("-").  Memory does not grow
 * with the log; a line longer than WEIR__LOG_LINE is counted as bad and skipped.  Entries come as
 * in the file: servers log at the end of a request, so times may go back by seconds.
 */
#ifndef WEIR_SERVER_REPLAY_LOG_H
#define WEIR_SERVER_REPLAY_LOG_H

#include "server/base/date.h"
#include "weir.h"

#define WEIR__LOG_LINE  65536
#define WEIR__LOG_ATTRS 32

struct weir__log_entry {
    weir_time at;                            /* since 1970; at least 0, and before 2262 */
    struct weir_attr attrs[WEIR__LOG_ATTRS]; /* no two of one name; point into the reader's buffers,
                                                good until the next line */
    size_t n;
    int status;       /* as the server answered then; 0: not told */
    int64_t bytes;    /* -1: not told */
    int64_t line;     /* of this file, from 1 */
    const char *text; /* the whole line, without its newline */
    size_t text_len;
};

struct weir__log;

/* `format`: "auto" (by the first line that is not empty), "combined" or "json".  `map`:
 * "attribute=field.path,...", or NULL; other attributes are found under the usual names (see
 * log-json.c).  The fields of combined logs are their attributes (account=user); any other is a
 * mistake, which with "auto" only the first line shows.  Combined lines give ip, user, method, uri,
 * protocol, status, bytes, header.referer, header.user-agent and host (if the line begins with it);
 * a "-" is not given, nor a malformed request's three.
 * JSON lines give the same, the mapped attributes, and every other field under its path while there
 * is room. */
int weir__log_open(struct weir__log **out, const char *path, const char *format, const char *map,
                   struct weir_error *error);
void weir__log_close(struct weir__log *log);

/* 1: an entry; 0: the end; negative: reading failed (error says why), after all that could be read.
 * Lines that cannot be understood are counted, not returned; empty ones are no entries and no
 * mistakes. */
int weir__log_next(struct weir__log *log, struct weir__log_entry *entry, struct weir_error *error);

struct weir__log_figures {
    int64_t lines, bad; /* read; not understood */
    int64_t first_bad;  /* the first such line, 0: none */
    char first_bad_why[128];
    int64_t bytes_read,
        bytes_all; /* of the file as it lies, for a progress bar; bytes_all -1: not known */
};
void weir__log_figures(const struct weir__log *log, struct weir__log_figures *out);

/* ---------------------------------------------------------------- one line ---- */

/* Why a line is wrong: `expected` is missing at its byte `at` (from 0). */
struct weir__log_fault {
    size_t at;
    const char *expected;
};

/* Where decoded texts go, for a line of `len` bytes. */
#define WEIR__LOG_SCRATCH(len) ((len) + WEIR__LOG_ATTRS * 256)

/* log-combined.c -- sets all of *entry but line and text, or says in *fault why not. */
bool weir__log_combined(const char *line, size_t len, char *scratch, struct weir__log_entry *entry,
                        struct weir__log_fault *fault);

/* A request's first line.  False, and *out untouched, if it is none. */
struct weir__log_request {
    const char *method, *uri, *protocol;
    size_t method_len, uri_len, protocol_len; /* protocol_len 0: none, as in HTTP/0.9 */
};
bool weir__log_request(const char *text, size_t len, struct weir__log_request *out);

/* log-json.c */
struct weir__log_map;
int weir__log_map_create(struct weir__log_map **out, const char *text,
                         struct weir_error *error); /* text as `map` above */
void weir__log_map_destroy(struct weir__log_map *map);
/* For combined lines, whose fields are the attributes that they give.  Why the map is not for them,
 * or NULL: it is; `out` is where the reason is put. */
const char *weir__log_map_misfit(const struct weir__log_map *map, char *out, size_t size);
void weir__log_map_rename(const struct weir__log_map *map, struct weir__log_entry *entry);
bool weir__log_json(const char *line, size_t len, char *scratch, const struct weir__log_map *map,
                    struct weir__log_entry *entry, struct weir__log_fault *fault);

/* A value may be empty, and for struct weir_attr a length of 0 means "up to the NUL byte": then it
 * is "". */
static inline void weir__log_add(struct weir__log_entry *entry, const char *name, size_t name_len,
                                 const char *value, size_t value_len)
{
    entry->attrs[entry->n++] =
        (struct weir_attr){ name_len ? name : "", value_len ? value : "", name_len, value_len, 0 };
}

#endif
