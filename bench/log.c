/* log.c -- what it costs to read an access log: a line of each format, a file of each packing by
 * way of the reader, JSON by the byte.
 *
 *     bench-log [FILE...]    without files: lines of its own; with: these, whole
 */
#include "bench.h"
#include "server/replay/log.h"
#include "wire/json.h"

#define LINES 2000000

static const char combined[] = "203.0.113.66 - - [03/Mar/2025:15:04:05 +0000] \"GET "
                               "/api/search?q=17 HTTP/1.1\" 200 5120 \"https://example.org/\" "
                               "\"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 "
                               "(KHTML, like Gecko) Chrome/126.0.0.0\"";
static const char json[] = "{\"time\":\"2025-03-03T15:04:05.678Z\",\"request_method\":\"GET\","
                           "\"request_uri\":\"/api/search?q=17\",\"status\":200,"
                           "\"body_bytes_sent\":5120,\"remote_addr\":\"203.0.113.66\",\"http_user_"
                           "agent\":\"Mozilla/5.0 (Windows NT 10.0; Win64; "
                           "x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0\"}";

static char scratch[WEIR__LOG_SCRATCH(sizeof(json))];

static void read_combined(void *context, int64_t n)
{
    struct weir__log_entry entry;
    struct weir__log_fault fault;

    (void)context;
    for (int64_t i = 0; i < n; i++) {
        keep(weir__log_combined(combined, sizeof(combined) - 1, scratch, &entry, &fault));
        keep((uint64_t)entry.at + entry.n);
    }
}

static void read_json(void *context, int64_t n)
{
    struct weir__log_entry entry;
    struct weir__log_fault fault;

    for (int64_t i = 0; i < n; i++) {
        keep(weir__log_json(json, sizeof(json) - 1, scratch, context, &entry, &fault));
        keep((uint64_t)entry.at + entry.n);
    }
}

static bool ignore(void *context, const struct weir__json_value *value)
{
    *(uint64_t *)context += value->len;
    return true;
}

static void walk_json(void *context, int64_t n)
{
    uint64_t sum = 0;
    const char *what;

    (void)context;
    for (int64_t i = 0; i < n; i++)
        keep((uint64_t)weir__json_walk(json, sizeof(json) - 1, scratch, ignore, &sum, &what));
    keep(sum);
}

static void read_file(const char *path)
{
    static struct weir__log_entry entry;
    struct weir__log_figures f;
    struct weir__log *log;
    struct weir_error e;
    double begin = cpu_ns();
    int code;

    if (weir__log_open(&log, path, "auto", NULL, &e) != WEIR_OK)
        die(path, &e);
    while ((code = weir__log_next(log, &entry, &e)) > 0)
        keep((uint64_t)entry.at);
    if (code < 0)
        die(path, &e);
    weir__log_figures(log, &f);
    weir__log_close(log);
    printf("log.file\t%.4g\tns a line\t%s, %lld lines, %lld bad\n",
           (cpu_ns() - begin) / (double)(f.lines ? f.lines : 1), path, (long long)f.lines,
           (long long)f.bad);
}

int main(int argc, char **argv)
{
    struct weir__log_map *map;
    struct weir_error e;

    for (int i = 1; i < argc; i++)
        read_file(argv[i]);
    if (argc > 1)
        return 0;
    if (weir__log_map_create(&map, NULL, &e) != WEIR_OK)
        die("map", &e);
    figure("log.combined.line", measure(read_combined, NULL, LINES), "ns");
    figure("log.json.line", measure(read_json, map, LINES), "ns");
    figure("log.json.walk", (double)(sizeof(json) - 1) * 1e3 / measure(walk_json, NULL, LINES),
           "MB/s");
    weir__log_map_destroy(map);
    return 0;
}
