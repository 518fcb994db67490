/* limit-directives.c -- zones, keys, locations and inheritance as rules. */
#include "unit/server/import/importing.h"

static void check_rules(const char *http, const char *server, const char *const *wanted, size_t n,
                        size_t losses)
{
    FINALLY(importing_end) struct importing i;

    import_lines(&i, http, server);
    for (size_t k = 0; k < n; k++)
        assert_contains(i.out.bytes, wanted[k]);
    if (i.import.losses != losses)
        fail_msg("%zu losses, not %zu:\n%s", i.import.losses, losses, i.out.bytes);
}

#define CHECK(http, server, losses, ...)                            \
    check_rules(http, server, (const char *const[]){ __VA_ARGS__ }, \
                sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *), losses)

TEST(test_N1_limits)
{
    CHECK(ZONE, "limit_req zone=one;", 0, "limit: leaky-bucket 10/1s burst 1 queue 0\n");
    CHECK(ZONE, "limit_req zone=one burst=5;", 0, "leaky-bucket 10/1s burst 1 queue 5\n",
          "nginx delays requests here");
    CHECK(ZONE, "limit_req zone=one burst=5 delay=2;", 0, "leaky-bucket 10/1s burst 3 queue 3\n");
    CHECK(ZONE, "limit_req zone=one burst=5 nodelay;", 0, "leaky-bucket 10/1s burst 6 queue 0\n");
    CHECK("limit_req_zone $uri zone=one:1m rate=7r/m;", "limit_req zone=one;", 0,
          "leaky-bucket 116/1000s", "key: \"{uri}\"");
    CHECK("limit_req_zone all zone=one:1m rate=30r/m;", "limit_req zone=one;", 0,
          "leaky-bucket 30/1m burst 1 queue 0\n");
    CHECK(ZONE "limit_req_dry_run on;", "limit_req zone=one;", 0, "mode: shadow");
    CHECK("limit_req_zone $uri zone=one:1m rate=1r/h;", "limit_req zone=one;", 1,
          "no rate that nginx takes");
    CHECK(ZONE, "", 0, "no limit_req and no limit_conn: there is nothing to import");
}

TEST(test_N1_keys)
{
    CHECK("limit_req_zone $http_x zone=one:1m rate=1r/s;",
          "set $http_y 1; location / { set $http_x $remote_addr; limit_req zone=one; }", 0,
          "key: \"{http_x}\"", "weir_attribute http_x $http_x;");
    CHECK("limit_req_zone $http_host zone=one:1m rate=1r/s;", "limit_req zone=one;", 0,
          "key: \"{header.host}\"");
    CHECK("limit_req_zone $http_x_a-$cookie_b zone=one:1m rate=1r/s;", "limit_req zone=one;", 1,
          "$cookie_b ignores upper and lower case", "key: \"{header.x-a|-}-{cookie.b|-}\"");
    CHECK("limit_req_zone $arg_a$arg_b zone=one:1m rate=1r/s;", "limit_req zone=one;", 2,
          "key: \"{arg.a}:{arg.b|-}\"", "arg.a: [\"*\"]", "key: \"{arg.b}\"");
    CHECK("limit_req_zone $jwt_sub zone=one:1m rate=1r/s;", "limit_req zone=one;", 0,
          "key: \"{jwt_sub}\"", "#     weir_attribute jwt_sub $jwt_sub;");
    CHECK("limit_req_zone \"a{%}$uri\" zone=one:1m rate=1r/s;", "limit_req zone=one;", 0,
          "key: \"a{{_}}{uri}\"");
}

TEST(test_N1_maps)
{
    CHECK("map $host $k { default \"\"; a.example $remote_addr; B.example $remote_addr; }"
          "limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 0, "host: [{ exact: \"a.example\" }, { exact: \"b.example\" }]");
    CHECK("map $http_x_plan $k { default $remote_addr; gold \"\"; }"
          "limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 1, "not:\n      header.x-plan: [{ exact: \"gold\" }]");
    CHECK("map $uri $k { ~^/7/ $remote_addr; ~^/8 \"\"; default $uri; }"
          "limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 0, "match:\n      uri: [{ prefix: \"/7/\" }]",
          "not:\n      uri: [{ prefix: \"/7/\" }, { prefix: \"/8\" }]");
    CHECK("map $http_x_a $k { default \"\"; \"\" 1; ~bot $remote_addr; }"
          "limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 0, "match:\n      header.x-a: [{ glob: \"*bot*\" }]\n");
    CHECK("map $host $k { hostnames; default \"\"; *.a.b 1; x.a.b \"\"; *.c.a.b 2; .d 3; }"
          "limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 0, "match:\n      host: [{ exact: \"d\" }, { glob: \"*.d\" }]\n",
          "match:\n      host: [{ glob: \"*.a.b\" }]\n    not:\n      host: [",
          "{ exact: \"x.a.b\" }, ", "{ glob: \"*.c.a.b\" }]\n");
    CHECK("map $host $k { *.a 1; } limit_req_zone $k zone=one:1m rate=1r/s;", "limit_req zone=one;",
          0, "host: [{ exact: \"*.a\" }]");
    CHECK("map $a $b { default $b; } limit_req_zone $b zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 1, "weir_attribute b $b;");
    CHECK("map $uri$arg_x $k { /1 \"\"; default 1; } limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 2, "rules cannot express this map", "key: \"{k}\"");
}

TEST(test_N1_geos)
{
    CHECK("geo $k { default a; 10.0.0.0/8 b; 10.0.0.0/9 \"\"; }"
          "limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 0, "match:\n      ip: [\"10.128.0.0/9\"]",
          "not:\n      ip: [\"10.128.0.0/9\", \"10.0.0.0/9\"]");
    CHECK("geo $k { ranges; 10.0.0.0-10.1.0.0 b; } limit_req_zone $k zone=one:1m rate=1r/s;",
          "limit_req zone=one;", 1, "rules cannot express this geo");
}

TEST(test_N1_places)
{
    CHECK(ZONE, "location /a/ { limit_req zone=one; } location /a/b/ {} location = /a/c {}", 0,
          "match:\n      uri: [{ prefix: \"/a/\" }]",
          "not:\n      uri: [{ prefix: \"/a/b/\" }, { exact: \"/a/c\" }]");
    CHECK(ZONE, "limit_req zone=one; location /a/ { return 200; }", 0,
          "not:\n      uri: [{ prefix: \"/a/\" }]");
    CHECK(ZONE, "location ~ \\.php$ { limit_req zone=one; } location ^~ /a/ {} location /b/ {}", 0,
          "match:\n      uri: [{ glob: \"**.php\" }]", "not:\n      uri: [{ prefix: \"/a/\" }]");
    CHECK(ZONE, "location /a/ { location ~ \\.php$ { limit_req zone=one; } }", 0,
          "uri: [{ glob: \"/a/**.php\" }]");
    /* within the prefix, and of it only what is left to match */
    CHECK(ZONE, "location /a/ { location ~ ^/.*\\.php$ { limit_req zone=one; } }", 0,
          "match:\n      uri: [{ glob: \"/a/**.php\" }]\n");
    CHECK(ZONE, "location /a/ { location ~ /b$ { limit_req zone=one; } }", 0,
          "match:\n      uri: [{ glob: \"/a/**/b\" }, { exact: \"/a/b\" }]\n");
    CHECK(ZONE, "limit_req zone=one; location /a { location ~ ^/(b|c)/ { return 204; } }", 0,
          "name: \"one\"\n    key:");
    CHECK(ZONE, "location /a/ { location ~ ^/[^/]*/b { limit_req zone=one; } }", 1,
          "rules cannot express this regular expression");
    /* where the place that is next in turn has the same limits, nothing differs */
    CHECK(ZONE,
          "limit_req zone=one; location / {} location ~ ^/[a-z]+$ {} location ~* \\.php$ {}"
          "location = /a { return 204; } location ^~ /b { return 204; }",
          0, "name: \"one\"\n    not:\n      uri: [{ exact: \"/a\" }, { prefix: \"/b\" }]\n");
    CHECK(ZONE,
          "location ~ \\.js$ {} location ~ ^/[a-z]+$ { limit_req zone=one; }"
          "location / { limit_req zone=one; }",
          0, "not:\n      uri: [{ glob: \"**.js\" }]\n");
    CHECK(ZONE, "limit_req zone=one; location ~ ^/[a-z]+$ {} location /b { return 204; }", 1,
          "rules cannot express this regular expression");
    CHECK(ZONE, "limit_req zone=one; location /b {} location ~ ^/[a-z]+$ { return 204; }", 1,
          "rules cannot express this regular expression");
    CHECK(ZONE "server { location ~ ^/[a-z]+$ {} }", "limit_req zone=one;", 0, "version: 1\n");
    /* of blocks: outer regular expressions after inner ones, unless ^~ is between */
    CHECK(ZONE,
          "location /a/ { location /a/b/ { limit_req zone=one; } location ~ \\.php$ {} }"
          "location ~ \\.js$ {} location ^~ /c/ { location /c/d/ { limit_req zone=one; } }",
          1, "not:\n      uri: [{ glob: \"/a/**.php\" }, { glob: \"**.js\" }]\n",
          "match:\n      uri: [{ prefix: \"/c/d/\" }]\n    key:");
    /* an excluded place between two of a zone: apart */
    CHECK(ZONE,
          "location / { limit_req zone=one; } location /a/ {} "
          "location /a/b/ { limit_req zone=one; }",
          1, "name: \"one.2\"", "uri: [{ prefix: \"/a/b/\" }]");
}

TEST(test_N1_kinds_of_locations_without_a_blank)
{
    CHECK(ZONE, "location =/a { limit_req zone=one; } location ~*\\.[0-9]$ { limit_req zone=one; }",
          1, "match:\n      uri: [{ exact: \"/a\" }]");
    CHECK(ZONE, "location ^~/a { } location ~\\.php$ { limit_req zone=one; }", 0,
          "match:\n      uri: [{ glob: \"**.php\" }]\n    not:\n      uri: [{ prefix: \"/a\" }]");
    CHECK(ZONE, "location ~*\\.php$ { limit_req zone=one; }", 1, "~* ignores");
}

TEST(test_N1_inheritance)
{
    CHECK(ZONE "limit_req zone=one burst=1;",
          "location / {} location /a/ { limit_req zone=one burst=2; }", 1,
          "not:\n      uri: [{ prefix: \"/a/\" }]", "queue 1\n", "queue 2\n");
    CHECK(ZONE "limit_req zone=one;", "location /a/ { limit_conn none 1; }", 1, "name: \"one\"");
}

TEST(test_N1_servers)
{
    CHECK(ZONE "server { server_name x.example; }", "server_name y.example; limit_req zone=one;", 0,
          "match:\n      host: [{ exact: \"y.example\" }]");
    CHECK(ZONE "server { server_name x.example; limit_req zone=one; }", "server_name *.example;", 1,
          "not:\n      host: [{ glob: \"*.example\" }]");
    CHECK(ZONE "server { listen 80; return 301 https://x; }", "listen 443 ssl; limit_req zone=one;",
          0, "match:\n      scheme: [{ exact: \"https\" }]");
    /* told apart by address */
    CHECK(ZONE "server { listen 127.0.0.1:80; }", "listen 127.0.0.2:80; limit_req zone=one;", 1,
          "differ by the address of port 80");
    CHECK(ZONE "server { listen 80; listen 127.0.0.1:80; limit_req zone=one; }", "listen 81;", 0,
          "match:\n      server_port: [{ exact: \"80\" }]\n");
    CHECK(ZONE "server { listen unix:/a; limit_req zone=one; }", "listen 80;", 1, "unix socket");
    /* no request finds a server without a name */
    FINALLY(importing_end) struct importing i;
    import_lines(&i, ZONE "server { listen 80 default_server; server_name a; }",
                 "limit_req zone=one;");
    assert_null(strstr(i.out.bytes, "rules:"));
    CHECK(ZONE "server { listen 80; server_name a; }", /* by its old name */
          "listen 80 default; server_name b; limit_req zone=one;", 0,
          "not:\n      host: [{ exact: \"a\" }]\n");
    /* the first server of a name has it */
    CHECK(ZONE "server { server_name a b; }", "server_name b c; limit_req zone=one;", 0,
          "match:\n      host: [{ exact: \"c\" }]\n");
    CHECK(ZONE "server { server_name *.b; }", "server_name .b c; limit_req zone=one;", 0,
          "match:\n      host: [{ exact: \"c\" }]\n");
    CHECK(ZONE "server { server_name x; }", "server_name b .b; limit_req zone=one;", 0,
          "match:\n      host: [{ exact: \"b\" }]\n");
    /* which of the names with stars counts */
    CHECK(ZONE "server { server_name *.a.b w.a.b; }", "server_name *.b; limit_req zone=one;", 0,
          "not:\n      host: [{ glob: \"*.a.b\" }, { exact: \"w.a.b\" }]\n");
    CHECK(ZONE "server { server_name *.b; }", "server_name w.*; limit_req zone=one;", 0,
          "not:\n      host: [{ glob: \"*.b\" }]\n");
    CHECK(ZONE "server { server_name w.b; }", "server_name ~^w\\.; limit_req zone=one;", 0,
          "match:\n      host: [{ prefix: \"w.\" }]\n    not:\n      host: [{ exact: \"w.b\" }]\n");
    CHECK(ZONE "server { server_name ~^w; }", "server_name w.*; limit_req zone=one;", 0,
          "match:\n      host: [{ glob: \"w.*\" }]\n    key:");
    CHECK(ZONE "server { listen 8080; }", "listen 8081; limit_req zone=one;", 0,
          "server_port: [{ exact: \"8081\" }]", "#     weir_attribute server_port $server_port;");
}

TEST(test_N2_connections)
{
    CHECK("limit_conn_zone $binary_remote_addr zone=c:1m; limit_conn_zone $x zone=d:1m;",
          "limit_conn c 5; limit_conn d 70000;", 1, "concurrency: { max: 5, key: \"{ip/32/128}\" }",
          "lease: 1h", "max: 16384");
}

/* Before they are asked. */
TEST(test_N1_rewritten_requests_are_named)
{
    CHECK(ZONE, "location /b { if ($x) { rewrite ^ /a; } } location /a { limit_req zone=one; }", 1,
          "the rewritten request");
    CHECK(ZONE, "location /b { if ($x) { return 403; } } location /a { limit_req zone=one; }", 0);
    CHECK(ZONE, "limit_req zone=one; rewrite ^/b /a last;", 0); /* whose key is the address */
    CHECK("limit_req_zone $uri zone=u:1m rate=1r/s;", "limit_req zone=u; rewrite ^/b /a last;", 1,
          "the rewritten request");
    CHECK("limit_req_zone $arg_1 zone=u:1m rate=1r/s;", "limit_req zone=u; set $args 1=2;", 1,
          "the rewritten request");
    CHECK("map $uri $k { ~^/a 1; } limit_conn_zone $k zone=u:1m;",
          "limit_conn u 1; location / { rewrite ^/b /a break; }", 1, "the rewritten request");
    CHECK(ZONE, "limit_req zone=one; set $args 1=2; set $a;", 0);
    CHECK(ZONE, "location /a { limit_req zone=one; set $args 1=2; }", 0); /* it stays where it is */
    CHECK(ZONE, "location /a { limit_req zone=one; rewrite ^/a/(.*) /$1 break; }", 0);
    CHECK(ZONE, "location /a { limit_req zone=one; if ($x) { rewrite ^ /b break; } }", 0);
    CHECK(ZONE, "rewrite ^/b /a break; location /a { limit_req zone=one; }", 1,
          "the rewritten request");
    /* answered */
    CHECK(ZONE, "limit_req zone=one; rewrite ^/b /a permanent;", 1, "this rewrite answers");
    CHECK(ZONE, "rewrite ^/b https://a.example/; location / { limit_req zone=one; }", 1,
          "this rewrite answers");
    CHECK(ZONE, "location /b { rewrite ^ /a redirect; } location /a { limit_req zone=one; }", 0);
}

TEST(test_N1_other_things_are_named)
{
    CHECK(ZONE, "location / { limit_req zone=one; if ($x) { return 403; } }", 1,
          "this return answers");
    CHECK(ZONE, "location / { try_files $uri /a; } location /a { limit_req zone=one; }", 1,
          "try_files leads to");
    CHECK(ZONE, "location /b { rewrite ^ /a; } location /a { limit_req zone=one; }", 1,
          "the rewritten request");
    CHECK(ZONE, "if ($x) { return 405; } location / { limit_req zone=one; }", 1,
          "this return answers");
    CHECK(ZONE "limit_conn_zone $uri zone=c:1m;",
          "limit_conn c 9; error_page 404 = @n; location @n { limit_req zone=one; }", 2,
          "this error_page leads to", "only nginx itself leads requests here");
    CHECK(ZONE "error_page 404 /a;", "location /a { limit_req zone=one; }", 1,
          "conf:3: differs: nginx may limit what this error_page leads to");
    /* inherited, by a place that may not ask what the page asks */
    CHECK(ZONE "limit_req_zone $cookie_1 zone=c:1m rate=1r/s;",
          "limit_req zone=one; error_page 404 /404; location /b { limit_req zone=c; }", 1,
          "this error_page leads to");
    CHECK(ZONE "limit_req_zone $uri zone=c:1m rate=1r/s;",
          "limit_req zone=one; error_page 404 /404; location /b { limit_req zone=c; }", 0);
    CHECK(ZONE "limit_req_zone $cookie_1 zone=c:1m rate=1r/s;",
          "limit_req zone=one; try_files $uri /x; location /b { limit_req zone=c; }", 0);
    CHECK(ZONE, "location / { mirror /m; } location = /m { limit_req zone=one; internal; }", 2,
          "this mirror leads to");
    CHECK(ZONE, "location = / {} location / { limit_req zone=one; }", 1, "the index index.html");
    CHECK(ZONE, "index a.php; location ~ \\.php$ { limit_req zone=one; }", 1, "the index a.php");
    CHECK(ZONE, "location = / { proxy_pass http://a; } location / { limit_req zone=one; }", 0,
          "uri: [{ exact: \"/\" }]");
    CHECK(ZONE "limit_req_status 444; limit_req_log_level warn;", "limit_req zone=one;", 0,
          "# conf:3: limit_req_status 444", "no log level");
}
