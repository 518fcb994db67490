/* event-log.c -- the log of events: whole lines, whatever becomes of the file; what could not be
 * written is counted, and nobody waits for it. */
#include "unit/test.h"

#include "unit/receiver.h"

#include <signal.h>
#include <sys/resource.h>

#include "server/serve/events/event-log.h"

static struct weir__events *events;
static struct weir__event_log *event_log;
static bool ended;

static weir_time now_is(void *context)
{
    return NOW;
}

static void emit(int n)
{
    while (n-- > 0)
        weir__events_emit(events, WEIR__EVENT_BAN, NOW,
                          &(struct weir__event_facts){ .rule = "login" });
}

static void wake(void *context)
{
    weir__event_log_wake(event_log);
}

static int try_to_begin(const char *log, const char *webhook, struct weir_error *error)
{
    struct weir__event_log_options options = { &loop, events, log, webhook, "", now_is, NULL };
    int code = weir__event_log_create(&event_log, &options, error);

    if (code == WEIR_OK)
        weir__events_on_emit(events, wake, NULL);
    return code;
}

static void begin(const char *log, const char *webhook)
{
    struct weir_error error = { 0 };

    if (try_to_begin(log, webhook, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static struct weir__event_log_counts counts(void)
{
    struct weir__event_log_counts c;

    weir__event_log_counts(event_log, &c);
    return c;
}

static void on_ended(void *context)
{
    ended = true;
}

static void stop(void)
{
    weir__events_on_emit(events, NULL, NULL);
    weir__event_log_stop(event_log, 20 * S, on_ended, NULL);
    run_until(ended);
}

static int make_all(void **state)
{
    ended = false;
    event_log = NULL;
    events = weir__events_create();
    return make_loop(state) != 0 || events == NULL;
}

static int free_all(void **state)
{
    if (event_log != NULL && !ended)
        stop();
    weir__event_log_destroy(event_log);
    weir__events_destroy(events);
    return free_loop(state);
}

static const char *contents(const char *path)
{
    static char text[500000];
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

static int lines_in(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

TEST_WITH(test_S4_events_are_lines_of_a_file, make_all, free_all)
{
    const char *path = new_path();
    struct stat st;

    begin(path, "");
    emit(2);
    run_until(counts().log_written == 2);
    assert_string_equal(
        contents(path),
        "{\"id\":1,\"time\":\"1970-01-01T00:16:40.000Z\",\"event\":\"ban\",\"rule\":\"login\"}\n"
        "{\"id\":2,\"time\":\"1970-01-01T00:16:40.000Z\",\"event\":\"ban\",\"rule\":\"login\"}\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0137, 0); /* others may not read it */
}

TEST_WITH(test_S4_a_file_is_gone_on_with, make_all, free_all)
{
    const char *path = new_path();

    write_at(path, 0, "before\n", 7);
    begin(path, "");
    emit(1);
    stop(); /* tells what there is */
    assert_memory_equal(contents(path), "before\n{\"id\":1,", 15);
    assert_int_equal(lines_in(contents(path)), 2);
}

/* As logrotate does it. */
TEST_WITH(test_S4_a_file_that_was_moved_is_made_anew, make_all, free_all)
{
    const char *path = new_path(), *moved = new_path();

    begin(path, "");
    emit(1);
    run_until(counts().log_written == 1);
    assert_int_equal(rename(path, moved), 0);
    emit(1);
    run_until(counts().log_written == 2);
    weir__event_log_reopen(event_log);
    emit(1);
    run_until(counts().log_written == 3);
    assert_int_equal(lines_in(contents(moved)), 2);
    assert_memory_equal(contents(path), "{\"id\":3,", 8);
    assert_int_equal(lines_in(contents(path)), 1);
}

TEST_WITH(test_a_file_that_cannot_be_opened_again_stays, make_all, free_all)
{
    char path[400], directory[360];

    snprintf(directory, sizeof(directory), "%s", new_path());
    snprintf(path, sizeof(path), "%s/log", directory);
    assert_int_equal(mkdir(directory, 0700), 0);
    begin(path, "");
    unlink(path);
    rmdir(directory);
    weir__event_log_reopen(event_log);
    emit(1);
    run_until(counts().log_written == 1);
}

TEST_WITH(test_a_file_that_cannot_be_opened_is_an_error, make_all, free_all)
{
    char path[400];

    snprintf(path, sizeof(path), "%s/missing/log", new_path());
    assert_fails(try_to_begin(path, "", &error), WEIR_SYSTEM, "missing/log");
    assert_fails(try_to_begin(new_path(), "nonsense", &error), WEIR_INVALID, "http://");
    assert_null(event_log);
}

TEST_WITH(test_S4_a_full_disk_loses_lines_and_no_more, make_all, free_all)
{
    begin("/dev/full", "");
    emit(3);
    run_until(counts().log_lost == 3);
    emit(2);
    run_until(counts().log_lost == 5);
    assert_int_equal(counts().log_written, 0);
}

/* A line that was cut short ends where it ends; the next one is whole. */
TEST_WITH(test_a_torn_line_spoils_no_other, make_all, free_all)
{
    const char *path = new_path();
    struct rlimit limit = { 100, RLIM_INFINITY }, before;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    begin(path, "");
    setrlimit(RLIMIT_FSIZE, &limit);
    emit(3); /* one fits, one is cut, one is refused */
    run_until(counts().log_lost == 2);
    setrlimit(RLIMIT_FSIZE, &before);
    emit(1);
    run_until(counts().log_written == 2);
    const char *text = contents(path);
    assert_int_equal(lines_in(text), 3);
    assert_memory_equal(strrchr(text, '{'), "{\"id\":4,", 8);
    assert_memory_equal(strchr(strchr(text, '\n') + 1, '\n') + 1, "{\"id\":4,", 8);
}

static void empty(int fd)
{
    char bytes[4096];

    while (read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

/* Nobody reads: lines wait in the ring, and when somebody does, what fell out of it is told. */
TEST_WITH(test_S4_a_pipe_that_nobody_reads_delays_nobody, make_all, free_all)
{
    const char *path = new_path();
    char bytes[65536];

    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    begin(path, "");
    assert_true(fcntl(reader, F_SETPIPE_SZ, 4096) > 0);
    for (int i = 0; i < 30; i++) {
        emit(100);
        uv_run(&loop, UV_RUN_NOWAIT); /* goes on although nobody reads */
    }
    assert_true(counts().log_written < 1000);
    int64_t written = counts().log_written;
    while (counts().log_written + counts().log_lost < 3000) {
        empty(reader);
        weir__event_log_wake(event_log); /* it would look again by itself, after a while */
        uv_run(&loop, UV_RUN_ONCE);
    }
    empty(reader);
    assert_true(counts().log_lost >= 3000 - WEIR__EVENTS_KEPT - written - 1);
    emit(1);
    run_until(counts().log_written + counts().log_lost == 3001);
    ssize_t n = read(reader, bytes, sizeof(bytes) - 1);
    assert_true(n > 0 && bytes[n - 1] == '\n');
    close(reader);
}

TEST_WITH(test_a_pipe_without_a_reader_is_no_wait, make_all, free_all)
{
    const char *path = new_path();
    struct weir_error error;

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(try_to_begin(path, "", &error), WEIR_SYSTEM);
}

TEST_WITH(test_a_reader_that_has_gone_loses_lines, make_all, free_all)
{
    const char *path = new_path();

    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    begin(path, "");
    close(reader);
    emit(2);
    run_until(counts().log_lost == 2);
}

TEST_WITH(test_S4_a_log_and_a_webhook, make_all, free_all)
{
    static const char *const answers[] = { OK_ANSWER };
    const char *path = new_path();

    receive(answers, 1);
    begin(path, receiver.url);
    emit(3);
    run_until(counts().log_written == 3 && counts().webhook.delivered == 3);
    emit(2);
    stop();
    assert_fields(counts(), (log_written, 5), (webhook.delivered, 5));
    assert_int_equal(lines_in(contents(path)), 5);
}

TEST_WITH(test_neither, make_all, free_all)
{
    begin("", "");
    emit(3);
    weir__event_log_reopen(event_log);
    uv_run(&loop, UV_RUN_NOWAIT);
    stop();
    assert_int_equal(counts().log_written + counts().log_lost, 0);
}

static int ignore_broken_pipes(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    return make_folder(state);
}

GROUP(ignore_broken_pipes, remove_folder)
