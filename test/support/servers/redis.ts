import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { waitFor } from '../wait-for.ts';
import { freePort } from './free-port.ts';

/** If redis-server is not installed, tests that need it are skipped. */
export const redisAvailable = spawnSync('redis-server', ['--version']).status === 0;

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  configure(name: string, value: string): Promise<void>;
  /** Removes all keys, as if the queue had been wiped. */
  flush(): Promise<void>;
  /** Sends SIGKILL and waits until the server has exited. */
  kill(): Promise<void>;
  /** Sends SIGKILL without waiting. An exiting process uses this, because it can no longer wait. */
  killAtOnce(): void;
  /** Starts an empty server on the same port. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<TestRedis> {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'));
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess | null = null;
  const kill = async (): Promise<void> => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  const start = async (): Promise<void> => {
    const options = ['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction', '--dir', folder];
    child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', ...options], {
      stdio: 'ignore',
    });
    await waitFor(`redis-server on port ${port}`, () => answers(url));
  };
  await start();
  return {
    url,
    port,
    configure: (name, value) =>
      withClient(url, async (client) => void (await client.config('SET', name, value))),
    flush: () => withClient(url, async (client) => void (await client.flushall())),
    kill,
    killAtOnce: () => void child?.kill('SIGKILL'),
    start,
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  return withClient(url, async (client) => (await client.ping()) === 'PONG');
}

async function withClient<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    client.disconnect();
  }
}
