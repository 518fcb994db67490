/* terminal.c -- colours, bars and columns of a terminal. */
#include "server/base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool weir__wants_colours(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

struct weir__colours weir__colours(bool wanted)
{
    if (!wanted)
        return (struct weir__colours){ "", "", "", "", "", "", "" };
    return (struct weir__colours){ "\033[32m", "\033[31m", "\033[33m", "\033[36m",
                                   "\033[2m",  "\033[1m",  "\033[0m" };
}

int weir__human_bar(FILE *out, double part, double whole, int width)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    int n = whole > 0 ? (int)(part / whole * 8 * width + 0.5) : 0;

    n = n > 8 * width ? 8 * width : n <= 0 ? part > 0 : n;
    for (int i = 0; i < n / 8; i++)
        fputs("█", out);
    fputs(eighths[n % 8], out);
    return (n + 7) / 8;
}

const char *weir__human_column(int64_t eighths)
{
    static const char *const columns[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };

    return columns[eighths < 0 ? 0 : eighths > 8 ? 8 : eighths];
}

int weir__terminal_columns(int otherwise)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");

    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return columns && atoi(columns) > 0 ? atoi(columns) : otherwise;
}
