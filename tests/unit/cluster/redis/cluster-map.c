/* cluster-map.c -- which node has what: Cluster, Sentinels, several seeds. */
#include "unit/redis-world.h"

TEST(test_D2_keys_go_to_their_nodes)
{
    OWN(world) *w = cluster_world();
    int foo = ask(w, "GET foo"), bar = ask(w, "GET bar");

    greet(w, "b:1", WELCOME);
    sends(w, "b:1", "GET foo");
    sends(w, "a:1", "GET bar");
    tell(w, "b:1", "+foo\r\n");
    tell(w, "a:1", "+bar\r\n");
    is(w, foo, IS_ANSWERED, "+foo");
    is(w, bar, IS_ANSWERED, "+bar");
    assert_int_equal(weir__redis_client_mode(w->client), WEIR__REDIS_MODE_CLUSTER);
}

TEST(test_D2_moved)
{
    OWN(world) *w = cluster_world();
    int i = ask(w, "GET bar");

    take(w, conn_to(w, "a:1"));
    tell(w, "a:1", "-MOVED 5061 c:1\r\n");
    greet(w, "c:1", WELCOME);
    sends(w, "c:1", "GET bar");
    tell(w, "c:1", "+1\r\n");
    is(w, i, IS_ANSWERED, "+1");
    ask(w, "GET bar"); /* remembered */
    sends(w, "c:1", "GET bar");
}

/* The slot's new owner is asked once, and the map stays. */
TEST(test_D2_ask)
{
    OWN(world) *w = cluster_world();
    int i = ask(w, "GET bar");

    take(w, conn_to(w, "a:1"));
    tell(w, "a:1", "-ASK 5061 b:1\r\n");
    greet(w, "b:1", WELCOME);
    sends(w, "b:1", "ASKING; GET bar");
    tell(w, "b:1", "+OK\r\n+1\r\n");
    is(w, i, IS_ANSWERED, "+1");
    ask(w, "GET bar");
    sends(w, "a:1", "GET bar");
}

/* ASKING holds for one command: it is needed before the script's text again. */
TEST(test_D2_ask_and_noscript)
{
    OWN(world) *w = cluster_world();
    struct weir__redis_script script = weir__redis_script("return 1", 8);
    struct weir__redis_ask *ask = new_ask(w, "1 bar");

    ask->script = &script;
    weir__redis_client_ask(w->client, ask, w->now);
    tell(w, "a:1", "-ASK 5061 b:1\r\n");
    greet(w, "b:1", WELCOME);
    take(w, conn_to(w, "b:1"));
    tell(w, "b:1", "+OK\r\n-NOSCRIPT No matching script.\r\n");
    sends(w, "b:1", "ASKING; EVAL return 1 1 bar");
    tell(w, "b:1", "+OK\r\n-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    pass(w, 5 * MS);
    take(w, conn_to(w, "a:1"));
    is(w, 1, IS_WAITING, "");
}

/* Its keys are on two nodes, then all on the new one, long before the slot is. */
TEST(test_D2_ask_after_rests)
{
    OWN(world) *w = cluster_world();
    int i = ask(w, "GET bar");

    for (int tries = 0; tries < 5; tries++) {
        sends(w, "a:1", "GET bar");
        tell(w, "a:1", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
        pass(w, 100 * MS);
    }
    sends(w, "a:1", "GET bar");
    tell(w, "a:1", "-ASK 5061 b:1\r\n");
    greet(w, "b:1", WELCOME);
    sends(w, "b:1", "ASKING; GET bar");
    tell(w, "b:1", "+OK\r\n+1\r\n");
    is(w, i, IS_ANSWERED, "+1");
}

/* Two nodes that ask each other for it: no busy network either. */
TEST(test_D2_ask_ping_pong)
{
    OWN(world) *w = cluster_world();
    int i = ask(w, "GET bar"), turns = 0;

    while (w->outcome[i] == IS_WAITING) {
        for (int node = 0; node < 2; node++) {
            const char *place = node ? "b:1" : "a:1";
            struct weir__redis_conn *conn = find_conn(w, place, 0);
            if (conn && conn->phase == WEIR__REDIS_OPENING)
                greet(w, place, WELCOME);
            conn = find_conn(w, place, 0);
            const char *sent = conn ? take(w, conn) : "";
            if (strstr(sent, "ASKING"))
                tell(w, place, "+OK\r\n");
            if (strstr(sent, "GET")) {
                tell(w, place, node ? "-ASK 5061 a:1\r\n" : "-ASK 5061 b:1\r\n");
                turns++;
            }
        }
        pass(w, MS);
    }
    is(w, i, IS_UNDONE, "ASK");
    assert_in_range(turns, 5, 25);
}

/* Two nodes that send it to each other must not keep the network busy. */
TEST(test_D2_ping_pong)
{
    OWN(world) *w = cluster_world();
    int i = ask(w, "GET bar"), turns = 0;

    while (w->outcome[i] == IS_WAITING) {
        for (int node = 0; node < 2; node++) {
            const char *place = node ? "b:1" : "a:1";
            struct weir__redis_conn *conn = find_conn(w, place, 0);
            if (conn && conn->phase == WEIR__REDIS_OPENING)
                greet(w, place, WELCOME);
            conn = find_conn(w, place, 0);
            const char *sent = conn ? take(w, conn) : "";
            if (strstr(sent, SLOTS))
                tell(w, place, slots_reply(TWO_MASTERS));
            if (strstr(sent, "GET")) {
                tell(w, place, node ? "-MOVED 5061 a:1\r\n" : "-MOVED 5061 b:1\r\n");
                turns++;
            }
        }
        pass(w, MS);
    }
    is(w, i, IS_UNDONE, "MOVED");
    assert_in_range(turns, 5, 15);
}

/* The master dies: connection lost, then refused; MOVED to the dead; CLUSTERDOWN; a new map. */
TEST(test_D2_failover)
{
    OWN(world) *w = cluster_world();
    w->timeout = 10 * WEIR_SECOND;
    int first = ask(w, "GET foo");

    greet(w, "b:1", WELCOME);
    take(w, conn_to(w, "b:1"));
    lose(w, "b:1", "reset by peer");
    is(w, first, IS_UNKNOWN, "b:1: reset by peer");
    int i = ask(w, "GET foo");
    bool dead = true;
    for (int ms = 0; ms < 6000 && w->outcome[i] == IS_WAITING; ms++) {
        dead = ms < 2000;
        if (find_conn(w, "b:1", 0))
            lose(w, "b:1", "connection refused");
        if (strstr(take(w, conn_to(w, "a:1")), SLOTS))
            tell(w, "a:1", slots_reply(dead ? TWO_MASTERS : "a:1 0 8191 c:1 8192 16383"));
        struct weir__redis_conn *conn = find_conn(w, "c:1", 0);
        if (conn && conn->phase == WEIR__REDIS_OPENING)
            greet(w, "c:1", WELCOME);
        else if (conn && strstr(take(w, conn), "GET foo"))
            tell(w, "c:1", "+1\r\n");
        pass(w, MS);
    }
    is(w, i, IS_ANSWERED, "+1");
    assert_in_range(weir__redis_client_counts(w->client).maps_read, 2, 12);
}

/* However many asks run into trouble, the map is read a few times. */
TEST(test_D2_map_reads_are_rare)
{
    OWN(world) *w = cluster_world();
    int reads = 0;

    w->timeout = 60 * WEIR_SECOND;
    for (int i = 0; i < 200; i++)
        ask(w, "GET bar");
    for (int ms = 0; ms < 10000; ms++) {
        const char *sent = take(w, conn_to(w, "a:1"));
        for (const char *at = sent; *at; at += strcspn(at, ";"), at += *at ? 2 : 0) {
            bool map = strncmp(at, SLOTS, strlen(SLOTS)) == 0;
            reads += map;
            tell(w, "a:1", map ? slots_reply(TWO_MASTERS) : "-CLUSTERDOWN The cluster is down\r\n");
        }
        if (find_conn(w, "a:1", 1))
            weir__redis_client_lost(w->client, find_conn(w, "a:1", 1), "one is enough", w->now);
        pass(w, MS);
    }
    assert_in_range(reads, 5, 20);
}

/* A thousand clients lose the same master at the same moment: their reads are spread. */
TEST(test_D2_no_storm)
{
    enum { CLIENTS = 100, BUCKETS = 20 };
    struct world *all[CLIENTS];
    int reads[BUCKETS] = { 0 }, most = 0, sum = 0;

    for (int i = 0; i < CLIENTS; i++) {
        all[i] = cluster_world();
        weir__redis_client_destroy(all[i]->client);
        struct weir__redis_options options = { .jitter = (uint64_t)i * 1000 };
        assert_ok(weir__redis_url_parse(&options.url, "redis://a:1", NULL));
        assert_ok(weir__redis_client_create(&all[i]->client, &options, NULL));
        ask(all[i], "GET bar");
        greet(all[i], "a:1", WELCOME);
        take(all[i], conn_to(all[i], "a:1"));
        tell(all[i], "a:1", slots_reply(TWO_MASTERS));
        tell(all[i], "a:1", "+1\r\n");
        pass(all[i], 6 * WEIR_SECOND);
        ask(all[i], "GET foo");
        greet(all[i], "b:1", WELCOME);
        lose(all[i], "b:1", "reset by peer");
    }
    for (int i = 0; i < CLIENTS; i++) {
        for (int ms = 0; ms < 100; ms++) {
            struct weir__redis_conn *conn = find_conn(all[i], "a:1", 0);
            if (conn && strstr(take(all[i], conn), SLOTS)) {
                reads[ms / 5]++;
                tell(all[i], "a:1", slots_reply(TWO_MASTERS));
            }
            pass(all[i], MS);
        }
        world_destroy(all[i]);
    }
    for (int i = 0; i < BUCKETS; i++) {
        most = reads[i] > most ? reads[i] : most;
        sum += reads[i];
    }
    assert_in_range(sum, CLIENTS / 2, 2 * CLIENTS);
    assert_in_range(most, 1, CLIENTS / 4);
}

/* Endpoints that the node does not know itself: the host that was asked. */
TEST(test_D2_unknown_endpoints)
{
    OWN(world) *w = world_of("redis://a:1");

    ask(w, "GET foo");
    greet(w, "a:1", WELCOME);
    take(w, conn_to(w, "a:1"));
    tell(w, "a:1",
         "*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$-1\r\n:7\r\n"
         "*3\r\n:8192\r\n:16383\r\n*2\r\n$0\r\n\r\n:8\r\n");
    greet(w, "a:8", WELCOME);
    sends(w, "a:8", "GET foo");
}

/* A map that makes no sense changes nothing, and another node is asked. */
TEST(test_D2_wrong_maps)
{
    static const char *const maps[] = {
        "*0\r\n",
        ":1\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n*1\r\n:1\r\n:1\r\n",
        "*1\r\n*2\r\n:0\r\n:1\r\n",
    };

    for (size_t i = 0; i < COUNT_OF(maps); i++) {
        OWN(world) *w = world_of("redis://a:1");
        int n = ask(w, "GET foo");
        greet(w, "a:1", WELCOME);
        take(w, conn_to(w, "a:1"));
        tell(w, "a:1", maps[i]);
        is(w, n, IS_WAITING, "");
        pass(w, 100 * MS);
        sends(w, "a:1", SLOTS);
    }
}

/* A map of more nodes than there is room for is not kept, and leaves room for the next. */
TEST(test_D2_a_map_of_too_many_nodes)
{
    OWN(world) *w = world_of("redis://a:1");
    struct weir__buffer map = { 0 };
    int n = ask(w, "GET foo");

    weir__buffer_text(&map, "*3000\r\n");
    for (int i = 0; i < 3000; i++)
        weir__buffer_format(&map, "*3\r\n:%d\r\n:%d\r\n*2\r\n$1\r\nz\r\n:%d\r\n", i, i, i + 1);
    weir__buffer_add(&map, "", 1);
    greet(w, "a:1", WELCOME);
    take(w, conn_to(w, "a:1"));
    tell(w, "a:1", map.bytes);
    is(w, n, IS_WAITING, "");
    pass(w, 100 * MS);
    sends(w, "a:1", SLOTS);
    tell(w, "a:1", slots_reply(TWO_MASTERS));
    greet(w, "b:1", WELCOME);
    sends(w, "b:1", "GET foo");
    weir__buffer_free(&map);
}

/* The first seed is dead: the second is asked soon, not after a deadline. */
TEST(test_D2_several_seeds)
{
    OWN(world) *w = world_of("redis://a:1,b:1");
    int i = ask(w, "GET foo");
    bool first_a = find_conn(w, "a:1", 0) != NULL;
    const char *dead = first_a ? "a:1" : "b:1", *alive = first_a ? "b:1" : "a:1";

    lose(w, dead, "connection refused");
    pass(w, 50 * MS);
    greet(w, alive, WELCOME);
    sends(w, alive, SLOTS);
    tell(w, alive, NO_CLUSTER);
    sends(w, alive, "ROLE"); /* there may be replicas among them */
    tell(w, alive, "*1\r\n$6\r\nmaster\r\n");
    sends(w, alive, "GET foo");
    tell(w, alive, "+1\r\n");
    is(w, i, IS_ANSWERED, "+1");
}

/* One seed has another password, or one Sentinel does not know the master yet: the other is asked.
 * Only when none will do, asks are answered before their time. */
TEST(test_D1_seeds_that_do_not_help)
{
    static const struct {
        const char *url, *refusal, *answer, *why;
    } rows[] = {
        { "redis://a:1,b:1", "-WRONGPASS invalid\r\n", WELCOME NO_CLUSTER, "WRONGPASS" },
        { "redis-sentinel://a:1,b:1/mine", WELCOME "*-1\r\n",
          WELCOME "*2\r\n$1\r\nm\r\n$1\r\n1\r\n", "know no master" },
    };

    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        OWN(world) *w = world_of(rows[i / 2].url);
        bool helps = i % 2;
        int n = ask(w, "GET foo");
        const char *first = find_conn(w, "a:1", 0) ? "a:1" : "b:1";
        const char *second = *first == 'a' ? "b:1" : "a:1";
        weir__redis_client_opened(w->client, conn_to(w, first), w->now);
        tell(w, first, rows[i / 2].refusal);
        is(w, n, IS_WAITING, "");
        pass(w, 50 * MS);
        weir__redis_client_opened(w->client, conn_to(w, second), w->now);
        tell(w, second, helps ? rows[i / 2].answer : rows[i / 2].refusal);
        is(w, n, helps ? IS_WAITING : IS_UNDONE, helps ? "" : rows[i / 2].why);
        if (helps && i / 2 == 1)
            assert_non_null(find_conn(w, "m:1", 0));
    }
}

#define REPLICA "%2\r\n+mode\r\n+standalone\r\n+role\r\n+replica\r\n"

/* Replicated Redis without Sentinels: the master is found among the seeds, again after a change. */
TEST(test_D1_master_among_seeds)
{
    OWN(world) *w = world_of("redis://a:1,b:1");
    w->timeout = 10 * WEIR_SECOND;
    int i = ask(w, "SET k");
    const char *master = "b:1", *replica = "a:1";

    for (int change = 0; change < 2; change++) {
        for (int ms = 0; ms < 5000 && w->outcome[i] == IS_WAITING; ms++) {
            for (int n = 0; n < 2; n++) {
                const char *place = n ? "b:1" : "a:1";
                bool is_master = strcmp(place, master) == 0;
                struct weir__redis_conn *conn = find_conn(w, place, 0);
                if (conn && conn->phase == WEIR__REDIS_OPENING)
                    greet(w, place, is_master ? WELCOME : REPLICA);
                const char *sent = conn ? take(w, conn) : "";
                if (strstr(sent, SLOTS))
                    tell(w, place, NO_CLUSTER);
                if (strstr(sent, "ROLE"))
                    tell(w, place, is_master ? "*1\r\n$6\r\nmaster\r\n" : "*1\r\n$5\r\nslave\r\n");
                if (strstr(sent, "SET"))
                    tell(w, place, is_master ? "+OK\r\n" : "-READONLY You can't write\r\n");
            }
            pass(w, MS);
        }
        is(w, i, IS_ANSWERED, "+OK");
        const char *other = master;
        master = replica;
        replica = other;
        while (find_conn(w, replica, 0))
            lose(w, replica, "demoted: clients are killed");
        i = ask(w, "SET k");
    }
}

TEST(test_D1_sentinels)
{
    OWN(world) *w = world_of("redis-sentinel://s:1/mine");
    w->timeout = 10 * WEIR_SECOND;
    int i = ask(w, "SET k");

    greet(w, "s:1", WELCOME);
    sends(w, "s:1", "SENTINEL GET-MASTER-ADDR-BY-NAME mine");
    tell(w, "s:1", "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
    greet(w, "a:1", WELCOME);
    sends(w, "a:1", "SET k");
    tell(w, "a:1", "+OK\r\n");
    is(w, i, IS_ANSWERED, "+OK");

    i = ask(w, "SET k");
    take(w, conn_to(w, "a:1"));
    tell(w, "a:1", "-READONLY You can't write against a read only replica.\r\n");
    pass(w, 60 * MS);
    sends(w, "s:1", "SENTINEL GET-MASTER-ADDR-BY-NAME mine");
    tell(w, "s:1", "*2\r\n$1\r\nb\r\n$1\r\n1\r\n");
    greet(w, "b:1", WELCOME);
    sends(w, "b:1", "SET k");
    tell(w, "b:1", "+OK\r\n");
    is(w, i, IS_ANSWERED, "+OK");
}

TEST(test_D1_sentinels_without_the_master)
{
    OWN(world) *w = world_of("redis-sentinel://s:1/other");
    int i = ask(w, "SET k");

    greet(w, "s:1", WELCOME);
    tell(w, "s:1", "*-1\r\n");
    is(w, i, IS_UNDONE, "know no master of this name");
}

TEST(test_D1_a_sentinel_is_no_redis)
{
    OWN(world) *w = world_of("redis://s:1");
    int i = ask(w, "SET k");

    greet(w, "s:1", "%1\r\n+mode\r\n+sentinel\r\n");
    tell(w, "s:1", "-ERR unknown command 'CLUSTER'\r\n");
    is(w, i, IS_UNDONE, "redis-sentinel://");
}

/* Nobody waits for what will not change. */
TEST(test_D1_a_redis_is_no_sentinel)
{
    static const char *const rows[][2] = {
        { "-ERR unknown command 'SENTINEL'\r\n", "redis://" },
        { "-NOPERM User ann has no permissions to run the 'sentinel' command\r\n", "NOPERM" },
    };

    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        OWN(world) *w = world_of("redis-sentinel://s:1/mine");
        int i = ask(w, "SET k");
        greet(w, "s:1", WELCOME);
        tell(w, "s:1", rows[row][0]);
        is(w, i, IS_UNDONE, rows[row][1]);
    }
}

#define OLD_NODE(place, role)                                                      \
    "*8\r\n$2\r\nip\r\n$1\r\n" place "\r\n$4\r\nport\r\n:1\r\n$4\r\nrole\r\n" role \
    "$1\r\nx\r\n:1\r\n"
#define NEW_NODE(place, role) \
    "%3\r\n$8\r\nendpoint\r\n$1\r\n" place "\r\n$4\r\nport\r\n:1\r\n$4\r\nrole\r\n" role
#define MASTER_ROLE  "$6\r\nmaster\r\n"
#define REPLICA_ROLE "$7\r\nreplica\r\n"

/* CLUSTER SLOTS may be gone, or forbidden: CLUSTER SHARDS says the same. */
TEST(test_D2_map_by_shards)
{
    static const char *const replies[] = {
        "*2\r\n*4\r\n$5\r\nslots\r\n*2\r\n:0\r\n:8191\r\n$5\r\nnodes\r\n*1\r\n" OLD_NODE(
            "a", MASTER_ROLE) "*4\r\n$5\r\nnodes\r\n*2\r\n" OLD_NODE("c", REPLICA_ROLE)
            OLD_NODE("b", MASTER_ROLE) "$5\r\nslots\r\n*2\r\n:8192\r\n:16383\r\n",
        "*2\r\n%2\r\n$5\r\nslots\r\n*2\r\n:0\r\n:8191\r\n$5\r\nnodes\r\n*1\r\n" NEW_NODE(
            "?", MASTER_ROLE) "%2\r\n$5\r\nslots\r\n*4\r\n:8192\r\n:9000\r\n:9001\r\n:16383\r\n"
                              "$5\r\nnodes\r\n*2\r\n" NEW_NODE("c", REPLICA_ROLE)
                                  NEW_NODE("b", MASTER_ROLE),
    };

    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        OWN(world) *w = world_of("redis://a:1");
        int foo = ask(w, "GET foo"), bar = ask(w, "GET bar");
        greet(w, "a:1", "%1\r\n+mode\r\n+cluster\r\n");
        sends(w, "a:1", SLOTS);
        tell(w, "a:1", "-ERR unknown subcommand 'SLOTS'\r\n");
        sends(w, "a:1", "CLUSTER SHARDS");
        tell(w, "a:1", replies[i]);
        sends(w, "a:1", "GET bar");
        tell(w, "a:1", "+bar\r\n");
        greet(w, "b:1", WELCOME);
        sends(w, "b:1", "GET foo");
        tell(w, "b:1", "+foo\r\n");
        is(w, foo, IS_ANSWERED, "+foo");
        is(w, bar, IS_ANSWERED, "+bar");
    }
}

/* A user that may not read the map learns it from MOVED. */
TEST(test_D2_map_by_moved_alone)
{
    OWN(world) *w = world_of("redis://a:1");
    int i = ask(w, "GET foo");

    greet(w, "a:1", "%1\r\n+mode\r\n+cluster\r\n");
    take(w, conn_to(w, "a:1"));
    tell(w, "a:1", "-NOPERM this user has no permissions to run the 'cluster|slots' command\r\n");
    sends(w, "a:1", "CLUSTER SHARDS");
    tell(w, "a:1", "-NOPERM this user has no permissions to run the 'cluster|shards' command\r\n");
    sends(w, "a:1", "GET foo");
    tell(w, "a:1", "-MOVED 12182 b:1\r\n");
    greet(w, "b:1", "%1\r\n+mode\r\n+cluster\r\n");
    sends(w, "b:1", "GET foo");
    tell(w, "b:1", "+1\r\n");
    is(w, i, IS_ANSWERED, "+1");
    ask(w, "GET foo");
    sends(w, "b:1", "GET foo");
}

/* Answers everything that a node is asked. */
static void serve(struct world *w, const char *place, const char *map)
{
    struct weir__redis_conn *conn = find_conn(w, place, 0);

    if (conn && conn->phase == WEIR__REDIS_OPENING)
        greet(w, place, WELCOME);
    const char *at = conn ? take(w, conn) : "";
    for (; *at; at += strcspn(at, ";"), at += *at ? 2 : 0)
        tell(w, place, strncmp(at, SLOTS, strlen(SLOTS)) == 0 ? slots_reply(map) : "+1\r\n");
}

/* Nodes that come and go for years do not pile up. */
TEST(test_D2_nodes_come_and_go)
{
    OWN(world) *w = cluster_world();
    char map[64], place[16], old[16] = "b:1";
    size_t most = 0;

    for (int i = 0; i < 50; i++) {
        snprintf(place, sizeof(place), "n%d:1", i);
        snprintf(map, sizeof(map), "a:1 0 8191 %s 8192 16383", place);
        int bar = ask(w, "GET bar");
        take(w, conn_to(w, "a:1"));
        tell(w, "a:1", "-CLUSTERDOWN x\r\n"); /* doubt */
        for (int ms = 0; ms < 3000; ms++) {
            serve(w, "a:1", map);
            serve(w, old, map);
            pass(w, MS);
        }
        is(w, bar, IS_ANSWERED, "+1");
        int foo = ask(w, "GET foo");
        serve(w, place, map);
        serve(w, place, map);
        is(w, foo, IS_ANSWERED, "+1");
        assert_null(find_conn(w, old, 0));
        memcpy(old, place, sizeof(old));
        size_t n = 0;
        while (weir__redis_client_conn(w->client, n))
            n++;
        most = n > most ? n : most;
    }
    assert_in_range(most, 1, 16);
}
