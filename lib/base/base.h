/* base.h -- for every room: errors, the clock, files, the nearest of several names. */
#ifndef WEIR_BASE_BASE_H
#define WEIR_BASE_BASE_H

#include "weir.h"

__extension__ typedef unsigned __int128 weir__u128;
__extension__ typedef __int128 weir__i128;

static inline int64_t weir__int_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t weir__int_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* error.c -- fills *error (which may be NULL) and returns the code: `return weir__fail(...)`. */
int weir__fail(struct weir_error *error, enum weir_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int weir__fail_at(struct weir_error *error, int column, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* WEIR_SYSTEM, with strerror. */
int weir__fail_errno(struct weir_error *error, const char *what, const char *path);

/* clock.c -- the only file that reads a clock or waits for one. */
weir_time weir__clock_monotonic(void); /* never steps; starts at 0 at boot */
weir_time weir__clock_real(void);      /* since 1970; may step */
void weir__clock_sleep(weir_time span);
/* Sleeps while *word is `value`, for at most `span` (WEIR_FOREVER: no end); may wake for no reason.
 * No other process may use the word. */
void weir__clock_wait_word(uint32_t *word, uint32_t value, weir_time span);
/* Wakes one sleeper; the word itself may be gone by now. */
void weir__clock_wake_word(uint32_t *word);
/* Likewise, and while *shared is `seen`: a word that other processes use too.  Where the kernel
 * cannot wait for two words, only the first counts. */
void weir__clock_wait_words(uint32_t *word, uint32_t value, uint32_t *shared, uint32_t seen,
                            weir_time span);
void weir__clock_wake_shared(uint32_t *shared); /* all sleepers, of all processes */

#define WEIR__BOOT_ID_SIZE 16
void weir__clock_boot_id(
    unsigned char id[WEIR__BOOT_ID_SIZE]); /* different after each boot; zeros: unknown */

/* file.c -- reads to the end; free() it.  NULL: see errno, EFBIG if there are more than `most`
 * bytes. */
char *weir__file_read_all(int fd, size_t most, size_t *len);
/* A regular file; likewise. */
int weir__file_load(const char *path, size_t most, char **out, size_t *len,
                    struct weir_error *error);
/* What a program prints must not get into the file: a descriptor above the standard three, for one
 * that has just been opened.  -1: see errno. */
int weir__file_apart(int fd);

/* hash.c; the hash itself is in hash.h */
int weir__random_fill(void *out, size_t size); /* from the kernel; 0, or -1 with errno */

/* spell.c -- number of edits from word to name, ignoring case; swapping two neighbours ("gcar") is
 * one.  Both are at most this long. */
#define WEIR__EDITS_MAX 40
unsigned weir__edits(const char *word, size_t n, const char *name, size_t m);

/* The name that was probably meant; NULL: none is near.  There are `n` names, or fewer if a NULL
 * ends them; WEIR__TO_NULL: as many as there are before the NULL. */
#define WEIR__TO_NULL SIZE_MAX
const char *weir__nearest(const char *word, size_t len, const char *const *names, size_t n);

/* The end of "unknown key 'limt'; ...": "did you mean 'limit'?", or "known are a, b, c". */
struct weir__hint {
    char text[160];
};
struct weir__hint weir__hint(const char *word, size_t len, const char *const *names, size_t n);
/* If no name is near: `otherwise`. */
struct weir__hint weir__hint_or(const char *word, size_t len, const char *const *names, size_t n,
                                const char *otherwise);

/* Foreign text in quotes, safe in one line of a log: cut if it is long, bytes that a terminal might
 * obey written as \xNN. */
struct weir__quoted {
    char text[64];
};
struct weir__quoted weir__quote(const char *text, size_t len);

#endif
