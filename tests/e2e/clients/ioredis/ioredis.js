// ioredis.js -- ioredis, from the registry (registry.py).
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const { Redis } = require('ioredis');

const version = require('ioredis/package.json').version;
const world = JSON.parse(fs.readFileSync(process.env.WEIR_WORLD));

// Runs `use` with a client that is connected, and closes it.
async function withClient(use, server = 'plain', options = {}) {
    const client = new Redis({ host: world.host, port: world.ports[server], lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0, ...options });
    let cause;
    client.on('error', (error) => { cause = error; });
    try {
        await client.connect().catch((error) => { throw cause || error; });
        await use(client);
    } finally {
        client.disconnect();
    }
}

const steps = {
    async connect() { // ready only when INFO was read
        await withClient(async (client) => assert.strictEqual(await client.ping(), 'PONG'));
        await withClient(async (client) => assert.strictEqual(await client.client('GETNAME'), 'shop'), 'plain', { connectionName: 'shop', db: 0 });
    },
    async throttle() {
        await withClient(async (client) => {
            for (const row of world.golden) {
                await client.call('WEIR.CLOCK', row.now_ns);
                assert.deepStrictEqual(await client.call('CL.THROTTLE', 'golden', 4, 1, 1, row.quantity), row.reply);
            }
        });
    },
    async check() {
        await withClient(async (client) => {
            for (const left of [4, 3, 2, 1, 0])
                assert.deepStrictEqual((await client.call('WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/')).slice(0, 4), [1, 'per-ip', 5, left]);
            const answer = await client.call('WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/');
            assert.deepStrictEqual([answer[0], answer[1], answer[4], answer[8]], [0, 'per-ip', 2000, 'limited']);
        });
    },
    async errors() {
        await withClient(async (client) => {
            await assert.rejects(client.call('CL.THROTTLE', 'k', 4, 0, 1), /Zero rates/);
            await assert.rejects(client.set('k', '1'), /unknown command/);
            assert.strictEqual(await client.ping(), 'PONG');
        });
    },
    async pipeline() {
        const use = async (client) => {
            const pipeline = client.pipeline();
            for (let i = 0; i < 100; i++)
                pipeline.call('CL.THROTTLE', 'pipeline', 4, 1, 60);
            pipeline.call('CL.THROTTLE', 'pipeline', 'x', 1, 60);
            const replies = await pipeline.exec();
            assert.match(replies.pop()[0].message, /parse as integer/);
            assert.deepStrictEqual(replies.map(([error, reply]) => error || reply[0]), [...Array(5).fill(0), ...Array(95).fill(1)]);
        };
        await withClient(use);
        await withClient(async (client) => { // without being told to pipeline
            await client.del('pipeline');
            const asks = Array.from({ length: 100 }, () => client.call('CL.THROTTLE', 'pipeline', 4, 1, 60));
            assert.strictEqual((await Promise.all(asks)).filter((reply) => reply[0] === 0).length, 5);
        }, 'plain', { enableAutoPipelining: true });
    },
    async multi() {
        await withClient(async (client) => {
            const ask = ['CL.THROTTLE', 'multi', 4, 1, 60];
            const replies = await client.multi().call(...ask).ping().call(...ask).exec();
            assert.deepStrictEqual(replies, [[null, [0, 5, 4, -1, 60]], [null, 'PONG'], [null, [0, 5, 3, -1, 120]]]);
        });
    },
    async resp3() {
        let left = 4;
        for (const options of [{ protocol: 3 }, { protocol: 3, replyMapping: 'resp3' }, { protocol: 2 }]) {
            await withClient(async (client) => {
                assert.deepStrictEqual((await client.call('WEIR.CHECK', 'ip', '192.0.2.8')).slice(0, 4), [1, 'per-ip', 5, left]);
                assert.deepStrictEqual((await client.call('WEIR.TAKE', 'resp3', '5/10s')).slice(0, 3), [1, 5, left--]);
            }, 'plain', options);
        }
    },
    async events() {
        await withClient((client) => withClient(async (listener) => {
            const message = new Promise((resolve) => listener.on('message', (...words) => resolve(words)));
            await listener.subscribe('weir.events.mode');
            await client.call('WEIR.MODE', 'shadow', 'per-ip');
            const [channel, text] = await message;
            assert.deepStrictEqual([channel, JSON.parse(text).rule], ['weir.events.mode', 'per-ip']);
            await listener.unsubscribe('weir.events.mode');
            assert.strictEqual(await listener.ping(), 'PONG');
        }));
    },
    async auth() {
        await assert.rejects(withClient((client) => client.ping(), 'guarded'), /NOAUTH/);
        await assert.rejects(withClient((client) => client.ping(), 'guarded', { password: 'wrong' }), /token is not known/);
        await withClient(async (client) => {
            assert.strictEqual((await client.call('WEIR.CHECK', 'ip', '192.0.2.7'))[0], 1);
            await assert.rejects(client.call('WEIR.MODE', 'off', 'per-ip'), /needs the admin role/);
        }, 'guarded', { password: world.check_token });
        await withClient(async (client) => JSON.parse(await client.call('WEIR.MODE', 'off', 'per-ip')), 'guarded',
            { username: 'default', password: world.admin_token });
    },
    async tls() {
        const ca = fs.readFileSync(world.certificate);
        await withClient(async (client) => {
            assert.deepStrictEqual(await client.call('CL.THROTTLE', 'tls', 4, 1, 60), [0, 5, 4, -1, 60]);
        }, 'tls', { password: world.check_token, tls: { ca } });
        await assert.rejects(withClient((client) => client.ping(), 'tls', { tls: {} }), /self-signed/);
    },
};

async function main() {
    for (const step of Object.values(steps))
        await step();
    console.log(`ioredis ${version}: ${Object.keys(steps).join(' ')}`);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
