import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../support/free-port.ts';
import { until } from '../patience.ts';

export interface RedisServer {
  readonly url: string;
  /** Loses everything, as a queue does that somebody wiped. */
  flush(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Without waiting: for when we end ourselves. */
  killAtOnce(): void;
  /** On the same port, with what its log of appends has, or with nothing. */
  start(options: { readonly empty: boolean }): Promise<void>;
}

export async function startRedisServer(folder: string): Promise<RedisServer> {
  const data = join(folder, 'redis');
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const server: RedisServer = {
    url,
    flush: async () => void (await ask(url, (redis) => redis.flushall())),
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    killAtOnce: () => void child?.kill('SIGKILL'),
    async start({ empty }) {
      if (empty) await rm(data, { recursive: true, force: true });
      await mkdir(data, { recursive: true });
      const options = [
        '--save',
        '',
        '--appendonly',
        'yes',
        '--maxmemory-policy',
        'noeviction',
        '--dir',
        data,
      ];
      child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', ...options], {
        stdio: 'ignore',
      });
      const pong = await until(() => ask(url, (redis) => redis.ping()), { timeoutMs: 20_000, everyMs: 50 });
      if (pong === null) throw new Error(`redis-server does not answer on port ${port}`);
    },
  };
  await server.start({ empty: true });
  return server;
}

async function ask<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
