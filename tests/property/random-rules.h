/* random-rules.h -- the text of a random rule set, and the end of a round that breaks a law. */
#ifndef WEIR_TESTS_PROPERTY_RANDOM_RULES_H
#define WEIR_TESTS_PROPERTY_RANDOM_RULES_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rounds.h"

static char yaml[8192];

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    size_t len = strlen(yaml);
    va_list args;

    va_start(args, format);
    vsnprintf(yaml + len, sizeof(yaml) - len, format, args);
    va_end(args);
}

/* Prints the seed of the round, and its rules. */
__attribute__((format(printf, 1, 2), noreturn)) static void stop(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "%s: seed %" PRIu64 ": ", program_invocation_short_name, seed_of_round);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n%s", yaml);
    va_end(args);
    exit(1);
}

#endif
