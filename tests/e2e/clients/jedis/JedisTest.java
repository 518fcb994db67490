// JedisTest.java -- Jedis, from Maven Central (registry.py).
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import org.json.JSONObject;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;

public class JedisTest {
    static JSONObject world;

    interface Step {
        void run() throws Exception;
    }

    static RedisClient client(String server, Consumer<DefaultJedisClientConfig.Builder> set) {
        DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder();
        set.accept(config);
        return RedisClient.builder().hostAndPort(world.getString("host"), world.getJSONObject("ports").getInt(server))
            .clientConfig(config.build()).build();
    }

    static RedisClient client() {
        return client("plain", config -> {});
    }

    static CommandObject<Object> command(Object... words) {
        ProtocolCommand name = () -> words[0].toString().getBytes(StandardCharsets.UTF_8);
        CommandArguments arguments = new CommandArguments(name);
        for (int i = 1; i < words.length; i++)
            arguments.add(words[i].toString());
        return new CommandObject<>(arguments, BuilderFactory.RAW_OBJECT);
    }

    // Bytes become text.
    static Object plain(Object reply) {
        if (reply instanceof byte[])
            return new String((byte[]) reply, StandardCharsets.UTF_8);
        if (!(reply instanceof List))
            return reply;
        List<Object> out = new ArrayList<>();
        for (Object one : (List<?>) reply)
            out.add(plain(one));
        return out;
    }

    static Object ask(RedisClient r, Object... words) {
        return plain(r.executeCommand(command(words)));
    }

    static void same(Object is, Object should) {
        if (!String.valueOf(is).equals(String.valueOf(should)))
            throw new AssertionError("came " + is + " instead of " + should);
    }

    static void refused(String why, Callable<?> run) throws Exception {
        Throwable cause = null;
        try {
            run.call();
        } catch (JedisException e) {
            for (cause = e; cause != null; cause = cause.getCause())
                if (String.valueOf(cause.getMessage()).contains(why))
                    return;
            throw e;
        }
        throw new AssertionError("not refused: " + why);
    }

    static void connect() {
        try (RedisClient r = client("plain", config -> config.clientName("shop"))) {
            same(r.ping(), "PONG");
            same(ask(r, "CLIENT", "GETNAME"), "shop");
        }
    }

    static void throttle() {
        try (RedisClient r = client()) {
            for (Object one : world.getJSONArray("golden")) {
                JSONObject row = (JSONObject) one;
                ask(r, "WEIR.CLOCK", row.getString("now_ns"));
                same(ask(r, "CL.THROTTLE", "golden", 4, 1, 1, row.getInt("quantity")), row.getJSONArray("reply").toList());
            }
        }
    }

    static void check() {
        try (RedisClient r = client()) {
            for (int left = 4; left >= 0; left--)
                same(((List<?>) ask(r, "WEIR.CHECK", "ip", "192.0.2.7", "uri", "/")).subList(0, 4), Arrays.asList(1, "per-ip", 5, left));
            List<?> answer = (List<?>) ask(r, "WEIR.CHECK", "ip", "192.0.2.7", "uri", "/");
            same(Arrays.asList(answer.get(0), answer.get(1), answer.get(4), answer.get(8)), Arrays.asList(0, "per-ip", 2000, "limited"));
        }
    }

    static void errors() throws Exception {
        try (RedisClient r = client()) {
            refused("Zero rates", () -> ask(r, "CL.THROTTLE", "k", 4, 0, 1));
            refused("unknown command", () -> r.set("k", "1"));
            same(r.ping(), "PONG");
        }
    }

    static void pipeline() {
        try (RedisClient r = client(); Pipeline pipe = r.pipelined()) {
            for (int i = 0; i < 100; i++)
                pipe.executeCommand(command("CL.THROTTLE", "pipeline", 4, 1, 60));
            List<Object> replies = pipe.syncAndReturnAll();
            for (int i = 0; i < 100; i++)
                same(((List<?>) replies.get(i)).get(0), i < 5 ? 0 : 1);
        }
    }

    static void multi() {
        try (RedisClient r = client(); AbstractTransaction all = r.multi()) {
            all.executeCommand(command("CL.THROTTLE", "multi", 4, 1, 60));
            all.executeCommand(command("PING"));
            all.executeCommand(command("CL.THROTTLE", "multi", 4, 1, 60));
            same(plain(all.exec()), Arrays.asList(Arrays.asList(0, 5, 4, -1, 60), "PONG", Arrays.asList(0, 5, 3, -1, 120)));
        }
    }

    static void resp3() {
        int left = 4;
        for (RedisProtocol version : Arrays.asList(RedisProtocol.RESP3, RedisProtocol.RESP2)) {
            try (RedisClient r = client("plain", config -> config.protocol(version))) {
                same(((List<?>) ask(r, "WEIR.CHECK", "ip", "192.0.2.8")).subList(0, 4), Arrays.asList(1, "per-ip", 5, left));
                same(((List<?>) ask(r, "WEIR.TAKE", "resp3", "5/10s")).subList(0, 3), Arrays.asList(1, 5, left--));
            }
        }
    }

    static void events() {
        List<String> got = new ArrayList<>();
        try (RedisClient r = client()) {
            r.subscribe(new JedisPubSub() {
                @Override public void onSubscribe(String channel, int n) {
                    ask(r, "WEIR.MODE", "shadow", "per-ip");
                }

                @Override public void onMessage(String channel, String text) {
                    got.addAll(Arrays.asList(channel, new JSONObject(text).getString("rule")));
                    unsubscribe();
                }
            }, "weir.events.mode");
            same(r.ping(), "PONG");
        }
        same(got, Arrays.asList("weir.events.mode", "per-ip"));
    }

    static void auth() throws Exception {
        refused("NOAUTH", () -> client("guarded", config -> {}).ping());
        refused("token is not known", () -> client("guarded", config -> config.password("wrong")).ping());
        try (RedisClient r = client("guarded", config -> config.password(world.getString("check_token")))) {
            ask(r, "WEIR.CHECK", "ip", "192.0.2.7");
            refused("needs the admin role", () -> ask(r, "WEIR.MODE", "off", "per-ip"));
        }
        try (RedisClient r = client("guarded", config -> config.user("default").password(world.getString("admin_token")))) {
            ask(r, "WEIR.MODE", "off", "per-ip");
        }
    }

    static SSLSocketFactory trusting(byte[] certificate) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        store.setCertificateEntry("weir", CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(certificate)));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    static void tls() throws Exception {
        SSLSocketFactory sockets = trusting(Files.readAllBytes(Path.of(world.getString("certificate"))));
        String token = world.getString("check_token");
        try (RedisClient r = client("tls", config -> config.ssl(true).sslSocketFactory(sockets).password(token))) {
            same(ask(r, "CL.THROTTLE", "tls", 4, 1, 60), Arrays.asList(0, 5, 4, -1, 60));
        }
        refused("unable to find valid certification path", () -> client("tls", config -> config.ssl(true).password(token)).ping());
    }

    static String version() throws Exception {
        Properties properties = new Properties();
        try (InputStream in = RedisClient.class.getResourceAsStream("/META-INF/maven/redis.clients/jedis/pom.properties")) {
            properties.load(in);
        }
        return properties.getProperty("version");
    }

    public static void main(String[] args) throws Exception {
        world = new JSONObject(Files.readString(Path.of(System.getenv("WEIR_WORLD"))));
        Map<String, Step> steps = new LinkedHashMap<>();
        steps.put("connect", JedisTest::connect);
        steps.put("throttle", JedisTest::throttle);
        steps.put("check", JedisTest::check);
        steps.put("errors", JedisTest::errors);
        steps.put("pipeline", JedisTest::pipeline);
        steps.put("multi", JedisTest::multi);
        steps.put("resp3", JedisTest::resp3);
        steps.put("events", JedisTest::events);
        steps.put("auth", JedisTest::auth);
        steps.put("tls", JedisTest::tls);
        for (Step step : steps.values())
            step.run();
        System.out.println("Jedis " + version() + ": " + String.join(" ", steps.keySet()));
    }
}
