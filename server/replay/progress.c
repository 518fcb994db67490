/* progress.c -- a line on a terminal that says how far a long reading has come.  The time is an
 * argument, as everywhere. */
#include "server/replay/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/human-numbers.h"

#define PATIENCE (WEIR_SECOND / 2) /* quicker readings need no bar */
#define EVERY    (WEIR_SECOND / 10)

enum { BAR = 24 };

void weir__progress_begin(struct weir__progress *progress, FILE *out, weir_time now)
{
    const char *term = getenv("TERM");

    *progress = (struct weir__progress){ .out = out, .from = now, .last = now };
    progress->on = isatty(fileno(out)) && !(term && strcmp(term, "dumb") == 0);
}

static void print_bar(char *out, double part)
{
    int full = (int)(part * BAR);

    for (int i = 0; i < BAR; i++)
        out = stpcpy(out, i < full ? "█" : "░");
}

int weir__progress_print(char *out, size_t size, weir_time spent,
                         const struct weir__progress_made *made)
{
    double seconds = (double)spent / (double)WEIR_SECOND,
           part = made->all > 0 ? (double)made->done / (double)made->all : 0;
    long long lines = made->lines, rate = seconds > 0 ? (long long)((double)lines / seconds) : 0;
    char bar[BAR * 4 + 1], left[32];

    if (part <= 0)
        return snprintf(out, size, "%s  %lld lines, %lld a second", made->what, lines, rate);
    part = part > 1 ? 1 : part;
    print_bar(bar, part);
    weir__human_duration(left, (weir_time)((double)spent * (1 - part) / part));
    return snprintf(out, size, "%s  %s %3d %%  %lld lines, %lld a second, %s left", made->what, bar,
                    (int)(part * 100), lines, rate, left);
}

void weir__progress_tell(struct weir__progress *progress, weir_time now,
                         const struct weir__progress_made *made)
{
    char line[512];

    if (!progress->on || now - progress->from < PATIENCE || now - progress->last < EVERY)
        return;
    weir__progress_print(line, sizeof(line), now - progress->from, made);
    fprintf(progress->out, "\r\033[K%s", line);
    fflush(progress->out);
    progress->last = now;
    progress->drawn = true;
}

void weir__progress_end(struct weir__progress *progress)
{
    if (progress->drawn) {
        fputs("\r\033[K", progress->out);
        fflush(progress->out);
    }
    progress->drawn = false;
}
