// node-redis.js -- node-redis: of Debian, and the newest one of the registry (registry.py).
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const redis = require('redis');

const version = /"version": *"([^"]+)"/.exec(fs.readFileSync(require.resolve('redis/package.json'), 'utf8'))[1];
const world = JSON.parse(fs.readFileSync(process.env.WEIR_WORLD));

// Runs `use` with a client that is connected, and closes it.
async function withClient(use, server = 'plain', options = {}) {
    const socket = { host: world.host, port: world.ports[server], reconnectStrategy: () => new Error('not again'), ...options.socket };
    const client = redis.createClient({ ...options, socket });
    let cause;
    client.on('error', (error) => { cause = error; });
    await client.connect().catch((error) => { throw cause || error; });
    try {
        await use(client);
    } finally {
        await (client.close ? client.close() : client.quit());
    }
}

const send = (client, ...words) => client.sendCommand(words.map(String));

const steps = {
    async connect() {
        await withClient(async (client) => assert.strictEqual(await client.ping(), 'PONG'));
        await withClient(async (client) => assert.strictEqual(await client.clientGetName(), 'shop'), 'plain', { name: 'shop', database: 0 });
    },
    async throttle() {
        await withClient(async (client) => {
            for (const row of world.golden) {
                await send(client, 'WEIR.CLOCK', row.now_ns);
                assert.deepStrictEqual(await send(client, 'CL.THROTTLE', 'golden', 4, 1, 1, row.quantity), row.reply);
            }
        });
    },
    async check() {
        await withClient(async (client) => {
            for (const left of [4, 3, 2, 1, 0])
                assert.deepStrictEqual((await send(client, 'WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/')).slice(0, 4), [1, 'per-ip', 5, left]);
            const answer = await send(client, 'WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/');
            assert.deepStrictEqual([answer[0], answer[1], answer[4], answer[8]], [0, 'per-ip', 2000, 'limited']);
        });
    },
    async errors() {
        await withClient(async (client) => {
            await assert.rejects(send(client, 'CL.THROTTLE', 'k', 4, 0, 1), /Zero rates/);
            await assert.rejects(client.set('k', '1'), /unknown command/);
            assert.strictEqual(await client.ping(), 'PONG');
        });
    },
    async pipeline() { // what is asked in one turn goes out in one write
        await withClient(async (client) => {
            const asks = Array.from({ length: 100 }, () => send(client, 'CL.THROTTLE', 'pipeline', 4, 1, 60));
            const refused = (await Promise.all(asks)).map((reply) => reply[0]);
            assert.deepStrictEqual(refused, [...Array(5).fill(0), ...Array(95).fill(1)]);
        });
    },
    async multi() {
        await withClient(async (client) => {
            const ask = ['CL.THROTTLE', 'multi', '4', '1', '60'];
            assert.deepStrictEqual(await client.multi().addCommand(ask).ping().addCommand(ask).exec(), [[0, 5, 4, -1, 60], 'PONG', [0, 5, 3, -1, 120]]);
        });
    },
    async resp3() {
        let left = 4;
        for (const version of [3, 2]) {
            await withClient(async (client) => {
                assert.deepStrictEqual((await send(client, 'WEIR.CHECK', 'ip', '192.0.2.8')).slice(0, 4), [1, 'per-ip', 5, left]);
                assert.deepStrictEqual((await send(client, 'WEIR.TAKE', 'resp3', '5/10s')).slice(0, 3), [1, 5, left--]);
            }, 'plain', { RESP: version });
        }
    },
    async events() {
        await withClient((client) => withClient(async (listener) => {
            const message = new Promise((resolve) => {
                listener.subscribe('weir.events.mode', (text, channel) => resolve([channel, JSON.parse(text)]))
                    .then(() => send(client, 'WEIR.MODE', 'shadow', 'per-ip'));
            });
            const [channel, event] = await message;
            assert.deepStrictEqual([channel, event.rule], ['weir.events.mode', 'per-ip']);
            await listener.unsubscribe('weir.events.mode');
            assert.strictEqual(await listener.ping(), 'PONG');
        }));
    },
    async auth() {
        await assert.rejects(withClient((client) => client.ping(), 'guarded'), /NOAUTH/);
        await assert.rejects(withClient((client) => client.ping(), 'guarded', { password: 'wrong' }), /token is not known/);
        await withClient(async (client) => {
            assert.strictEqual((await send(client, 'WEIR.CHECK', 'ip', '192.0.2.7'))[0], 1);
            await assert.rejects(send(client, 'WEIR.MODE', 'off', 'per-ip'), /needs the admin role/);
        }, 'guarded', { password: world.check_token });
        await withClient(async (client) => JSON.parse(await send(client, 'WEIR.MODE', 'off', 'per-ip')), 'guarded',
            { username: 'default', password: world.admin_token });
    },
    async tls() {
        const ca = fs.readFileSync(world.certificate);
        await withClient(async (client) => {
            assert.deepStrictEqual(await send(client, 'CL.THROTTLE', 'tls', 4, 1, 60), [0, 5, 4, -1, 60]);
        }, 'tls', { password: world.check_token, socket: { tls: true, ca } });
        await assert.rejects(withClient((client) => client.ping(), 'tls', { socket: { tls: true } }), /self-signed/);
    },
};

async function main() {
    if (parseInt(version) < 5)
        delete steps.resp3;
    for (const step of Object.values(steps))
        await step();
    console.log(`node-redis ${version}: ${Object.keys(steps).join(' ')}`);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
