<?php
// php-redis.php -- the redis extension of PHP (php-redis of Debian).
declare(strict_types=1);
error_reporting(E_ALL);
set_error_handler(function (int $kind, string $text) { throw new ErrorException($text); });

$world = json_decode(file_get_contents(getenv('WEIR_WORLD')), true);

function same($is, $should): void
{
    if ($is !== $should)
        throw new Exception('came ' . json_encode($is) . ' instead of ' . json_encode($should));
}

function client(string $server = 'plain'): Redis
{
    global $world;
    $r = new Redis();
    $r->connect($world['host'], $world['ports'][$server], 30, null, 0, 30);
    return $r;
}

// A command's reply; what the server says no with is an exception, as any PHP programmer would have it.
function ask(Redis $r, ...$words)
{
    $r->clearLastError();
    $reply = $r->rawCommand(...array_map('strval', $words));
    if ($r->getLastError() !== null)
        throw new RedisException($r->getLastError());
    return $reply;
}

function refused(string $why, callable $do): void
{
    try {
        $do();
    } catch (RedisException $e) {
        if (strpos($e->getMessage(), $why) === false)
            throw $e;
        return;
    }
    throw new Exception("not refused: $why");
}

$steps = [
    'connect' => function () {
        $r = client();
        same($r->ping(), true);
        same($r->select(0), true);
        same($r->client('setname', 'shop'), true);
        same($r->client('getname'), 'shop');
        same($r->info()['redis_mode'], 'standalone');
        same($r->close(), true);
    },
    'throttle' => function () use ($world) {
        $r = client();
        foreach ($world['golden'] as $row) {
            ask($r, 'WEIR.CLOCK', $row['now_ns']);
            same(ask($r, 'CL.THROTTLE', 'golden', 4, 1, 1, $row['quantity']), $row['reply']);
        }
    },
    'check' => function () {
        $r = client();
        foreach ([4, 3, 2, 1, 0] as $left)
            same(array_slice(ask($r, 'WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/'), 0, 4), [1, 'per-ip', 5, $left]);
        $answer = ask($r, 'WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/');
        same([$answer[0], $answer[1], $answer[4], $answer[8]], [0, 'per-ip', 2000, 'limited']);
    },
    'errors' => function () {
        $r = client();
        refused('Zero rates', fn () => ask($r, 'CL.THROTTLE', 'k', 4, 0, 1));
        refused('unknown command', fn () => ask($r, 'SET', 'k', 1));
        same($r->ping(), true);
    },
    'pipeline' => function () {
        $pipe = client()->pipeline();
        for ($i = 0; $i < 100; $i++)
            $pipe->rawCommand('CL.THROTTLE', 'pipeline', '4', '1', '60');
        same(array_column($pipe->exec(), 0), array_merge(array_fill(0, 5, 0), array_fill(0, 95, 1)));
    },
    'multi' => function () {
        $multi = client()->multi();
        $multi->rawCommand('CL.THROTTLE', 'multi', '4', '1', '60');
        $multi->ping();
        $multi->rawCommand('CL.THROTTLE', 'multi', '4', '1', '60');
        same($multi->exec(), [[0, 5, 4, -1, 60], true, [0, 5, 3, -1, 120]]);
    },
    'events' => function () { // subscribe returns only when its connection is closed, so a child causes the event; it does not know since when
        $other = pcntl_fork(); // we listen, and causes it again and again
        if ($other === 0) {
            for ($r = client(), $i = 0; ; $i++)
                ask($r, 'WEIR.MODE', $i % 2 ? 'enforce' : 'shadow', 'per-ip');
        }
        $got = null;
        try {
            client()->subscribe(['weir.events.mode'], function (Redis $r, string $channel, string $text) use (&$got) {
                $got = [$channel, json_decode($text, true)['rule']];
                $r->close();
            });
        } catch (RedisException $e) {
            same($e->getMessage(), 'Connection closed');
        } finally {
            posix_kill($other, SIGKILL);
            pcntl_waitpid($other, $status);
        }
        same($got, ['weir.events.mode', 'per-ip']);
        ask(client(), 'WEIR.MODE', 'enforce', 'per-ip');
    },
    'auth' => function () use ($world) {
        refused('NOAUTH', fn () => client('guarded')->ping());
        refused('token is not known', fn () => client('guarded')->auth('wrong'));
        $r = client('guarded');
        same($r->auth($world['check_token']), true);
        same(ask($r, 'WEIR.CHECK', 'ip', '192.0.2.7')[0], 1);
        refused('needs the admin role', fn () => ask($r, 'WEIR.MODE', 'off', 'per-ip'));
        $r = client('guarded');
        same($r->auth(['default', $world['admin_token']]), true);
        same(is_array(json_decode(ask($r, 'WEIR.MODE', 'off', 'per-ip'), true)), true);
    },
    'tls' => function () use ($world) {
        $r = new Redis();
        $trust = ['stream' => ['cafile' => $world['certificate']], 'auth' => [$world['check_token']]];
        $r->connect('tls://' . $world['host'], $world['ports']['tls'], 30, null, 0, 30, $trust);
        same(ask($r, 'CL.THROTTLE', 'tls', 4, 1, 60), [0, 5, 4, -1, 60]);
    },
];

foreach ($steps as $step)
    $step();
echo 'php-redis ' . phpversion('redis') . ': ' . implode(' ', array_keys($steps)) . "\n";
