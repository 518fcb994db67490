/* values.h -- values: large sets of them, patterns with stars, paths and hosts as servers see
 * them. */
#ifndef WEIR_MATCH_VALUES_H
#define WEIR_MATCH_VALUES_H

#include "base/base.h"

/* word-set.c -- is this value one of those?  Immutable; copies the words.  The hash is keyed:
 * hostile words cannot collide. */
struct weir__word_set;
int weir__word_set_create(struct weir__word_set **out, const char *const *words, size_t n,
                          struct weir_error *error);
void weir__word_set_destroy(struct weir__word_set *set);
bool weir__word_set_has(const struct weir__word_set *set, const char *word, size_t len);

/* glob.c -- * any run of bytes, ? any one; in a path neither matches a slash, and ** matches any
 * run, slashes included.  Time is at most pattern x text. */
bool weir__glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len,
                      bool path);

/* uri.c -- the path of a URI as a server will see it, so that no spelling escapes a rule: without
 * query and fragment (and without scheme and host, if it has them), %XX decoded once, // as /, /./
 * and /../ resolved; "*" stays.  Most paths are plain already and need no copy: is_plain says
 * whether weir__uri_plain would return the same bytes. */
bool weir__uri_is_plain(const char *uri, size_t len);
/* Writes its first `size` bytes, at least 1: "/"; len + 1 are always enough. */
size_t weir__uri_plain(const char *uri, size_t len, char *out, size_t size);

/* The same loosely: in lower case, without path parameters, with one slash at the end in the place
 * of all slashes and blanks there; len + 2 bytes are enough, unless empty segments count. */
enum weir__path_reader {
    WEIR__TOMCAT,
    WEIR__BEHIND_NGINX, /* Tomcat there: the path is plain */
    WEIR__WINDOWS,      /* parameters stay, and so does # */
    WEIR__DECODED,      /* escapes go first; a backslash ends a parameter too */
    WEIR__CUT,          /* a ; ends the path */
    WEIR__URL,          /* parameters stay; //x at the start is a host, %2f is no slash to .. */
    WEIR__URL_STRICTLY, /* and .. takes back an empty segment: // is two slashes */
    WEIR__JETTY,        /* the same of Tomcat's */
    WEIR__RAW_DOTS,     /* parameters and # stay, and an escaped dot is none */
    WEIR__DOTS          /* parameters, # and dots stay */
};
size_t weir__uri_loose(const char *uri, size_t len, enum weir__path_reader reader, char *out,
                       size_t size);

/* host.c -- the name of a host in small letters, without port and dot at the end: its first `size`
 * bytes.  is_plain says whether it is like this already. */
bool weir__host_is_plain(const char *host, size_t len);
size_t weir__host_plain(const char *host, size_t len, char *out, size_t size);

#endif
