/* serve.c -- the server from its beginning to its end: the parts are made, threads serve, the main
 * thread looks after signals, the rule file, events and the tick of every second; then it drains.
 *
 *     SIGTERM, SIGINT   drain: no new connections, requests under way are answered, then end.  A
 *                       second one ends at once
 *     SIGHUP            read the rule file and the certificates again, reopen the event log
 *     SIGUSR2           start a successor, which takes the sockets; this one drains when that one
 *                       is ready
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/thread.h"
#include "engine/explain.h"
#include "match/address.h"
#include "server/serve/announce.h"
#include "server/serve/decide/adhoc.h"
#include "server/serve/decide/ask-ids.h"
#include "server/serve/fleet.h"
#include "weir-fleet.h"
#include "server/serve/net/listen.h"
#include "server/serve/http/proxy-doubts.h"
#include "server/serve/settings/wrong-tokens.h"
#include "server/serve/settings/trusted-proxies.h"
#include "server/serve/net/loop.h"
#include "server/serve/decide/reservations.h"
#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/run.h"
#include "server/serve/events/event-log.h"
#include "server/serve/net/pass-connections.h"
#include "server/serve/net/successor.h"
#include "wire/tls.h"
#include "server/serve/events/top-keys.h"
#include "server/serve/decide/waiting.h"
#include "server/serve/events/events-from-counts.h"
#include "server/base/complain.h"
#include "server/base/table-file.h"

#define TICK_MS      1000
#define HEIR_TICKS   4 /* after its predecessor: a file is read once two looks find it the same */
#define BANS         65536
#define GUARDS       256
#define SLAB_PER_KEY 4096 /* address space; the file takes only the used part */

struct life {
    struct weir__server server;
    struct weir__settings settings;
    struct weir__listen listen;
    struct weir__event_log *event_log;
    weir_time test_clock;
    char **argv;                    /* for a successor */
    struct weir__problems problems; /* with the rules, said already */
    uv_loop_t uv;
    uv_timer_t ticker, deadline;
    uv_async_t ended; /* all loops have */
    pthread_t joiner;
    uv_signal_t terminate, interrupt, hang_up, user2;
    struct weir__successor successor;
    bool handed_over;
    int heir;  /* ticks that rules are watched for, whatever the settings say: a predecessor's */
    bool deaf; /* atomic: events have nowhere to go any more */
    bool certificate_told; /* that its time has not come, or is over */
};

/* ------------------------------------------------------------- the parts ---- */

static int make_table(struct life *life, struct weir_error *error)
{
    const struct weir__settings *s = &life->settings;
    struct weir_table_options options = { .path = s->memory ? NULL : s->table,
                                          .keys = s->keys,
                                          .limiters = s->limiters,
                                          .slab = s->keys * SLAB_PER_KEY,
                                          .bans = BANS,
                                          .guards = GUARDS,
                                          .mode = (unsigned)s->table_mode };
    struct weir_table_stats stats;

    int code = weir__table_owned(
        &options, &(struct weir__file_owner){ s->table_owner, s->table_group }, error);
    if (code == WEIR_OK && options.path)
        code = weir__table_await("serve", options.path, true, error);
    if (code == WEIR_OK)
        code = weir_table_create(&life->server.table, &options, error);
    if (code != WEIR_OK)
        return code;
    if (options.path)
        weir__table_guard_bytes("serve", options.path, life->server.table);
    weir_table_stats(life->server.table, -1, &stats);
    if (s->keys_given && /* slots: the keys and a quarter */
        (s->keys > stats.slots || s->keys < stats.slots / 2))
        weir__complain("serve",
                       "keys %" PRId64 " is ignored: the table was made with %" PRId64
                       " slots; only a new one has another size",
                       s->keys, stats.slots);
    return !stats.narrow ? WEIR_OK
                         : weir__fail(error, WEIR_INVALID,
                                      "the table %s has narrow slots; the server needs wide ones: "
                                      "choose another --table",
                                      s->table);
}

static int make_tls(struct life *life, struct weir_error *error)
{
    const struct weir__settings *s = &life->settings;
    struct weir__tls_options options = { .certificate = s->tls_certificate,
                                         .key = s->tls_key,
                                         .client_ca = s->tls_client_ca };

    return *s->tls_certificate ? weir__tls_context_create(&life->server.tls, &options, error)
                               : WEIR_OK;
}

/* A server that is in no fleet does not go on alone for one that its table was in. */
static int make_live(struct life *life, struct weir_error *error)
{
    struct weir__in_force_options options = { .engine = life->server.engine,
                                              .events = life->server.events,
                                              .rules = life->settings.rules,
                                              .beside = life->settings.memory
                                                            ? NULL
                                                            : life->settings.table,
                                              .problems = &life->problems };

    if (*life->settings.fleet == '\0')
        weir__engine_leave_fleet(life->server.engine);
    return weir__in_force_create(&life->server.in_force, &options, life->server.started, error);
}

static int make_parts(struct life *life, struct weir_error *error)
{
    struct weir__server *server = &life->server;
    const struct weir__settings *s = &life->settings;
    size_t loops = weir__settings_threads(s);
    int code = make_table(life, error);

    if (code != WEIR_OK)
        return code;
    server->test_clock = s->test_clock ? &life->test_clock : NULL;
    server->started = weir__server_now(server);
    code = weir_create(&server->engine, &(struct weir_options){ .table = server->table }, error);
    server->events = weir__events_create();
    if (server->events)
        weir__events_on_table(server->events, server->table);
    server->watch = server->events ? weir__watch_create(server->events) : NULL;
    server->fair_use = server->events ? weir__fair_use_create(server->events) : NULL;
    server->ask_ids = weir__ask_ids_create(s->ask_ids, s->ask_id_lifetime, server->fair_use);
    server->reservations = weir__reservations_create(s->reservation_lifetime, server->fair_use);
    server->wrong_tokens =
        server->events ? weir__wrong_tokens_create(server->events, s->auth_guesses) : NULL;
    server->proxy_doubts = weir__proxy_doubts_create();
    server->guards = weir__guards_create(server->table);
    server->lines = weir__lines_create(server);
    if (code == WEIR_OK &&
        (!server->watch || !server->ask_ids || !server->reservations || !server->wrong_tokens ||
         !server->proxy_doubts || !server->fair_use || !server->guards || !server->lines))
        code = weir__fail(error, WEIR_NO_MEMORY, "no memory");
    if (code == WEIR_OK)
        code = weir__adhoc_create(&server->adhoc, server->table, s->adhoc_limits, server->fair_use,
                                  error);
    if (code == WEIR_OK)
        code = weir__top_create(&server->top, loops, s->top, error);
    if (code == WEIR_OK)
        code = weir__proxies_parse(&server->proxies, s->trusted_proxies, error);
    if (code == WEIR_OK)
        code = make_tls(life, error);
    if (code == WEIR_OK)
        code = make_live(life, error);
    if (code == WEIR_OK)
        code = weir__node_join(server, error);
    return code;
}

/* Every loop gets those of the sockets that are its own. */
static int give_sockets(struct life *life, struct weir__loop *loop, struct weir_error *error)
{
    int code = WEIR_OK;

    loop->listeners = calloc(life->listen.n_sockets, sizeof(*loop->listeners));
    if (!loop->listeners)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    for (size_t i = 0; code == WEIR_OK && i < life->listen.n_sockets; i++) {
        struct weir__listen_socket *s = &life->listen.sockets[i];
        const struct weir__listen_address *a = &life->listen.addresses[s->address];
        if (s->loop != loop->index)
            continue;
        struct weir__listener *listener = &loop->listeners[loop->n_listeners++];
        *listener = (struct weir__listener){ .protocol = a->door == WEIR__DOOR_RESP ? &weir__resp
                                                                                    : &weir__http,
                                             .role = a->role,
                                             .fd = s->fd,
                                             .unix_socket = a->is_unix };
        code = weir__loop_listen(loop, listener, error);
        s->taken = true;
    }
    return code;
}

static int make_loops(struct life *life, struct weir_error *error)
{
    struct weir__server *server = &life->server;
    size_t n = weir__settings_threads(&life->settings);
    int code = WEIR_OK;

    server->loops = aligned_alloc(64, n * sizeof(*server->loops));
    if (!server->loops)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    memset(server->loops, 0, n * sizeof(*server->loops));
    for (size_t i = 0; code == WEIR_OK && i < n; i++) {
        code = weir__loop_create(&server->loops[i], server, i, error);
        if (code != WEIR_OK)
            break;
        server->n_loops++;
        code = give_sockets(life, &server->loops[i], error);
    }
    return code;
}

static void free_parts(struct life *life)
{
    struct weir__server *server = &life->server;

    weir__node_leave(server); /* its thread wakes loops */
    for (size_t i = 0; i < server->n_loops; i++)
        weir__loop_destroy(&server->loops[i]);
    free(server->loops);
    weir__listen_close(&life->listen, !life->handed_over);
    weir__in_force_destroy(server->in_force);
    weir__adhoc_destroy(server->adhoc);
    weir__reservations_destroy(server->reservations);
    weir__fair_use_destroy(server->fair_use);
    weir__wrong_tokens_destroy(server->wrong_tokens);
    weir__proxy_doubts_destroy(server->proxy_doubts);
    weir__lines_destroy(server->lines);
    weir__guards_destroy(server->guards);
    weir__ask_ids_destroy(server->ask_ids);
    weir__top_destroy(server->top);
    weir__watch_destroy(server->watch);
    weir__events_destroy(server->events);
    weir__tls_context_destroy(server->tls);
    weir__cidr_set_destroy(server->proxies);
    if (server->engine != NULL)
        weir_counts_share(server->engine);
    weir_destroy(server->engine);
    weir_table_destroy(server->table);
    weir__settings_free(&life->settings);
}

/* --------------------------------------------------------- the main thread ---- */

static void wake_all(void *context)
{
    struct life *life = context;

    if (!__atomic_load_n(&life->deaf, __ATOMIC_ACQUIRE))
        weir__event_log_wake(life->event_log);
    for (size_t i = 0; i < life->server.n_loops; i++)
        weir__loop_wake(&life->server.loops[i]);
}

static void tick(struct weir__server *server, weir_time now)
{
    weir__watch_tick(server->watch, server, now);
    weir__top_tick(server->top, now);
    weir__reservations_tend(server->reservations, now);
    weir__adhoc_tend(server->adhoc, server, now);
    weir__node_tick(server, now);
    weir_counts_share(server->engine);
    weir_table_tend(server->table, now);
}

/* At the start and after a renewal; and when its time ends while the server runs. */
static void warn_of_certificate(struct life *life)
{
    int64_t now = weir__clock_real() / WEIR_SECOND;

    if (life->server.tls == NULL || life->certificate_told)
        return;
    struct weir__tls_validity v = weir__tls_context_validity(life->server.tls);
    if (now >= v.from && now <= v.until)
        return;
    bool over = now > v.until;
    char date[32];
    struct tm tm;
    time_t moment = (time_t)(over ? v.until : v.from);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&moment, &tm));
    weir__complain("serve", "warning: the certificate %s %s %s: clients refuse it",
                   life->settings.tls_certificate, over ? "expired on" : "is not valid before",
                   date);
    life->certificate_told = true;
}

static void on_tick(uv_timer_t *timer)
{
    struct life *life = timer->data;
    weir_time now = weir__server_now(&life->server);
    struct weir__in_force *in_force = life->server.in_force;

    weir__table_check_bytes(life->server.table);
    warn_of_certificate(life);
    life->heir = life->server.pass ? HEIR_TICKS : life->heir > 0 ? life->heir - 1 : 0;
    if (life->settings.watch || life->heir > 0 ? weir__in_force_refresh(in_force, now)
                                               : weir__in_force_refresh_lists(in_force, now))
        weir__announce_reload(in_force);
    if (!life->server.test_clock) /* tests tick by setting it */
        tick(&life->server, now);
}

static void close_handle(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void on_deadline(uv_timer_t *timer)
{
    struct life *life = timer->data;

    __atomic_store_n(&life->server.draining, 2, __ATOMIC_RELEASE);
    wake_all(life);
}

/* A thread of its own waits for the others, so that the main one can go on telling events
 * meanwhile.  Not one of libuv's pool: those may be waiting to be told that the work of a
 * connection is over. */
static void *wait_for_loops(void *context)
{
    struct life *life = context;

    for (size_t i = 0; i < life->server.n_loops; i++)
        weir__loop_join(&life->server.loops[i]);
    uv_async_send(&life->ended);
    return NULL;
}

static void on_all_told(void *context)
{
    struct life *life = context;

    close_handle(&life->ticker);
    close_handle(&life->deadline);
    close_handle(&life->ended);
    weir__pass_close(&life->server);
    uv_signal_t *const heard[] = { &life->terminate, &life->interrupt, &life->hang_up,
                                   &life->user2 };
    for (size_t i = 0; i < sizeof(heard) / sizeof(heard[0]); i++)
        uv_unref((uv_handle_t *)heard[i]); /* not closed: a signal that comes now would end the
                                              process before its time */
    weir__successor_leave(&life->successor);
}

static void on_loops_ended(uv_async_t *ended)
{
    struct life *life = ended->data;

    pthread_join(life->joiner, NULL);
    __atomic_store_n(&life->deaf, true, __ATOMIC_RELEASE);
    weir__event_log_stop(life->event_log, life->settings.drain, on_all_told, life);
}

static void drain(struct life *life)
{
    weir_time now = weir__server_now(&life->server);
    int channel = life->successor.channel;

    if (life->server.draining == 0 && channel && weir__pass_is_heard(channel))
        life->server.successor = channel;
    if (__atomic_exchange_n(&life->server.draining, 1, __ATOMIC_ACQ_REL) !=
        0) { /* asked twice: at once */
        on_deadline(&life->deadline);
        return;
    }
    if (!life->handed_over) /* otherwise the service does not stop */
        weir__tell_supervisor("STOPPING=1");
    else
        weir__complain("serve", "pid %ld hands over to pid %ld, its successor", (long)getpid(),
                       (long)life->successor.process.pid);
    weir__events_emit(life->server.events, WEIR__EVENT_STOP, now, &(struct weir__event_facts){ 0 });
    uv_timer_start(&life->deadline, on_deadline,
                   (uint64_t)(life->settings.drain / WEIR_MILLISECOND), 0);
    if (weir__thread_start(&life->joiner, wait_for_loops, life) != 0)
        _exit(1); /* nothing is lost by it: the table is whole at every moment */
    weir__lines_close(life->server.lines); /* a turn may be longer in coming than the drain lasts */
    wake_all(life);
}

static void on_terminate(uv_signal_t *signal, int number)
{
    (void)number;
    drain(signal->data);
}

static void on_hang_up(uv_signal_t *signal, int number)
{
    struct life *life = signal->data;
    struct weir_error error;

    (void)number;
    weir__in_force_reload(life->server.in_force, "signal", weir__server_now(&life->server), NULL,
                          &error);
    weir__announce_reload(life->server.in_force);
    if (life->server.tls && weir__tls_context_renew(life->server.tls, &error) != WEIR_OK)
        weir__complain("serve", "the certificate stays as it is: %s", error.text);
    life->certificate_told = false;
    warn_of_certificate(life);
    weir__event_log_reopen(life->event_log);
}

static void on_successor_ended(void *context, int64_t status, int signal)
{
    struct life *life = context;

    if (__atomic_load_n(&life->server.draining, __ATOMIC_ACQUIRE) != 0)
        return;
    life->handed_over = false;
    weir__successor_leave(&life->successor);
    weir__complain("serve", "the successor ended (%s %" PRId64 "); this server goes on",
                   signal != 0 ? "signal" : "exit code", signal != 0 ? signal : status);
}

static void on_user2(uv_signal_t *signal, int number)
{
    struct life *life = signal->data;
    struct weir_error error;

    (void)number;
    if (life->server.draining)
        return;
    if (life->successor.is_there) {
        weir__complain("serve", "SIGUSR2 starts nothing: a successor, pid %ld, is starting",
                       (long)life->successor.process.pid);
        return;
    }
    if (weir__successor_start(&life->successor, &life->uv, &life->listen, life->argv, &error) ==
        WEIR_OK)
        life->handed_over = true;
    else
        weir__complain("serve", "%s", error.text);
}

/* --------------------------------------------------------------- starting ---- */

static int init_handles(struct life *life)
{
    uv_loop_t *uv = &life->uv;
    int code = uv_loop_init(uv);

    code = code ? code : uv_async_init(uv, &life->ended, on_loops_ended);
    code = code ? code : uv_timer_init(uv, &life->ticker);
    code = code ? code : uv_timer_init(uv, &life->deadline);
    if (code == 0) /* TSan loses a signal that comes while a thread waits for its first time */
        uv_run(uv, UV_RUN_NOWAIT);
    code = code ? code : uv_signal_init(uv, &life->terminate);
    code = code ? code : uv_signal_init(uv, &life->interrupt);
    code = code ? code : uv_signal_init(uv, &life->hang_up);
    code = code ? code : uv_signal_init(uv, &life->user2);
    life->ended.data = life->ticker.data = life->deadline.data = life;
    life->terminate.data = life->interrupt.data = life->hang_up.data = life->user2.data = life;
    code = code ? code : uv_signal_start(&life->terminate, on_terminate, SIGTERM);
    code = code ? code : uv_signal_start(&life->interrupt, on_terminate, SIGINT);
    code = code ? code : uv_signal_start(&life->hang_up, on_hang_up, SIGHUP);
    code = code ? code : uv_signal_start(&life->user2, on_user2, SIGUSR2);
    return code ? code : uv_timer_start(&life->ticker, on_tick, TICK_MS, TICK_MS);
}

static weir_time read_now(void *context)
{
    const struct weir__server *server = context;

    return weir_table_real(server->table, weir__server_now(server));
}

static int make_sinks(struct life *life, struct weir_error *error)
{
    const struct weir__settings *s = &life->settings;
    struct weir__event_log_options options = { .loop = &life->uv,
                                               .events = life->server.events,
                                               .log = s->events_log,
                                               .webhook = s->webhook,
                                               .token = s->webhook_token,
                                               .now = read_now,
                                               .context = &life->server };

    return weir__event_log_create(&life->event_log, &options, error);
}

static int start(struct life *life, struct weir_error *error)
{
    struct weir__server *server = &life->server;

    server->tick = tick;
    life->successor.ended = on_successor_ended;
    life->successor.context = life;
    server->settings = &life->settings;
    int code =
        weir__listen_open(&life->listen, &life->settings, weir__settings_threads(&life->settings),
                          error); /* before anything is made */
    if (code == WEIR_OK)
        code = make_parts(life, error);
    if (code == WEIR_OK && init_handles(life) != 0)
        code = weir__fail(error, WEIR_SYSTEM, "cannot make the main loop");
    if (code == WEIR_OK)
        code = make_sinks(life, error);
    if (code == WEIR_OK)
        code = make_loops(life, error);
    if (code != WEIR_OK)
        return code;
    server->event_log = life->event_log;
    server->listen = &life->listen;
    weir__events_on_emit(server->events, wake_all, life);
    for (size_t i = 0; code == WEIR_OK && i < server->n_loops; i++)
        code = weir__loop_start(&server->loops[i], error);
    return code;
}

/* As many files as the system lets us have: each connection is one. */
static void raise_files(const struct weir__settings *settings)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < (rlim_t)settings->connections_max + 64)
        weir__complain("serve",
                       "only %llu files may be open: connections-max of %" PRId64
                       " cannot be reached (ulimit -n)",
                       (unsigned long long)limit.rlim_cur, settings->connections_max);
}

int weir__serve(struct weir__settings *settings, char **argv)
{
    static struct life life; /* large, and there is one */
    struct weir_error error = { 0 };

    life.settings = *settings;
    life.argv = argv;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);  /* until there is something to reload, */
    signal(SIGUSR2, SIG_IGN); /* and something to hand over */
    raise_files(&life.settings);
    int code = start(&life, &error);
    if (code != WEIR_OK) {
        weir__complain("serve", "%s",
                       life.problems.n ? "the rules are wrong: nothing is served" : error.text);
        weir__listen_close(&life.listen, true);
        return 2; /* the process ends here: all else that was made goes with it */
    }
    weir__events_emit(life.server.events, WEIR__EVENT_START, life.server.started,
                      &(struct weir__event_facts){ .text = weir_version() });
    warn_of_certificate(&life);
    weir__announce_ready(&life.server, &life.listen);
    int channel = weir__successor_channel();
    life.heir = channel ? HEIR_TICKS : 0; /* it may be gone before the first tick */
    if (channel)
        weir__pass_receive(&life.server, &life.uv, channel);
    weir__successor_relieve();
    uv_run(&life.uv, UV_RUN_DEFAULT);
    weir__event_log_destroy(life.event_log);
    free_parts(&life);
    return 0;
}
