import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { readPostmasterFile } from '../../../src/embedded-postgres/claims.ts';
import { layoutOf } from '../../../src/embedded-postgres/data-directory.ts';
import { type EmbeddedPostgres, embeddedPostgres } from '../../../src/embedded-postgres/embedded-postgres.ts';
import { freePort } from '../../support/free-port.ts';
import { until } from '../waiting.ts';

/** A server of the soak's own: its processes outlive it, as they would a database on another machine. */
export interface PostgresServer {
  readonly url: string;
  /** SIGQUIT to the postmaster, as `pg_ctl stop -m immediate`: no checkpoint, no goodbye. */
  stopHard(): Promise<void>;
  /** Recovers, and serves again under the same address. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

// A server that is killed loses nothing for want of fsync, only a machine that is: we kill servers.
const settings = { fsync: 'off', max_connections: '150' };

export async function startPostgresServer(folder: string): Promise<PostgresServer> {
  const dataDir = join(folder, 'postgres');
  const log = pino({ level: 'silent' });
  let server: EmbeddedPostgres = await embeddedPostgres.start({ dataDir, log, settings });
  const { url } = server;
  return {
    url,
    async stopHard() {
      const postmaster = await readPostmasterFile(layoutOf(dataDir).data);
      if (postmaster === undefined) throw new Error('no postmaster runs');
      process.kill(postmaster.pid, 'SIGQUIT');
      await server.exited;
    },
    async start() {
      server = await embeddedPostgres.start({ dataDir, log, settings, port: Number(new URL(url).port) });
    },
    stop: () => server.stop(),
  };
}

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
