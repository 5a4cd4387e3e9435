import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { waitFor } from '../wait-for.ts';
import type { TestCertificates } from './certificates.ts';
import { freePort } from './free-port.ts';

/** Redis as it runs in large installations: several real processes, each with its own folder. */
interface RedisFleet {
  /** Value of REDIS_URL. */
  readonly url: string;
  /** Returns a connection to the node at a port. The connection is closed when the fleet stops. */
  look(port: number): Redis;
  /** Sends SIGKILL. */
  kill(port: number): Promise<void>;
  readonly ports: readonly number[];
  stop(): Promise<void>;
}

/** Starts one server that accepts only TLS connections and presents this certificate. */
export async function startTlsRedis(certificates: TestCertificates): Promise<RedisFleet> {
  const nodes = new Nodes(certificates);
  const port = await freePort();
  await nodes.start(port, []);
  return nodes.fleet(`rediss://localhost:${port}`);
}

/**
 * Starts a master, its replica and a sentinel, each with a password. The first of `ports` is the
 * master's.
 */
export async function startSentinelRedis(certificates: TestCertificates | null = null): Promise<RedisFleet> {
  const nodes = new Nodes(certificates);
  const [master, replica, sentinel] = await freePorts(3);
  const passwords = ['requirepass hidden-data', 'masterauth hidden-data'];
  const data = { password: 'hidden-data' };
  await nodes.start(master, passwords, data);
  await nodes.start(replica, [...passwords, `replicaof 127.0.0.1 ${master}`], data);
  await waitFor('the replica to follow', async () =>
    (await nodes.look(replica).info('replication')).includes('master_link_status:up'),
  );
  await nodes.start(
    sentinel,
    [
      ...['requirepass hidden-sentinel', `sentinel monitor main 127.0.0.1 ${master} 1`],
      ...['sentinel auth-pass main hidden-data', 'sentinel down-after-milliseconds main 500'],
      'sentinel failover-timeout main 3000',
    ],
    { password: 'hidden-sentinel' },
    ['--sentinel'],
  );
  await waitFor('the sentinel to know the replica', async () => {
    const replicas = (await nodes.look(sentinel).call('sentinel', 'replicas', 'main')) as unknown[];
    return replicas.length === 1;
  });
  // No sentinel listens at the first address, so clients have to ask the second.
  const hosts = `127.0.0.1:${await freePort()},127.0.0.1:${sentinel}`;
  return nodes.fleet(
    `${nodes.scheme}+sentinel://:hidden-data@${hosts}/main?sentinel_password=hidden-sentinel`,
  );
}

/** Starts a cluster of three masters, which share the hash slots. */
export async function startClusterRedis(certificates: TestCertificates | null = null): Promise<RedisFleet> {
  const nodes = new Nodes(certificates);
  const ports = await freePorts(3);
  // The default port of the cluster bus is port + 10000, which may be higher than 65535.
  const buses = await freePorts(3);
  await Promise.all(
    ports.map((port, at) => nodes.start(port, ['cluster-enabled yes', `cluster-port ${buses[at]}`])),
  );
  const slots = 16_384;
  for (const [at, port] of ports.entries()) {
    const from = Math.ceil((slots * at) / 3);
    const to = Math.ceil((slots * (at + 1)) / 3) - 1;
    await nodes.look(port).cluster('ADDSLOTSRANGE', from, to);
    await nodes.look(port).call('cluster', 'set-config-epoch', String(at + 1));
  }
  for (const [at, port] of ports.entries()) {
    if (at > 0)
      await nodes.look(ports[0]).call('cluster', 'meet', '127.0.0.1', String(port), String(buses[at]));
  }
  await waitFor('the cluster to be whole', async () => {
    const states = await Promise.all(
      ports.map(async (port) => String(await nodes.look(port).cluster('INFO'))),
    );
    return states.every(
      (state) => state.includes('cluster_state:ok') && state.includes('cluster_known_nodes:3'),
    );
  });
  return nodes.fleet(`${nodes.scheme}+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(',')}`);
}

/** With certificates, the nodes accept only TLS. */
class Nodes {
  private readonly certificates: TestCertificates | null;
  private readonly children = new Map<number, ChildProcess>();
  private readonly folders: string[] = [];
  private readonly clients = new Map<number, Redis>();

  constructor(certificates: TestCertificates | null) {
    this.certificates = certificates;
  }

  get scheme(): 'redis' | 'rediss' {
    return this.certificates === null ? 'redis' : 'rediss';
  }

  async start(
    port: number,
    lines: readonly string[],
    options: RedisOptions = {},
    args: readonly string[] = [],
  ): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'));
    this.folders.push(folder);
    const file = join(folder, 'redis.conf');
    const common = ['bind 127.0.0.1', `dir ${folder}`];
    const storing = args.length > 0 ? [] : ['save ""', 'appendonly no', 'maxmemory-policy noeviction'];
    await writeFile(file, `${[...common, ...this.listening(port), ...storing, ...lines].join('\n')}\n`);
    const child = spawn('redis-server', [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (text) => {
      output += text;
    });
    this.children.set(port, child);
    const ready = /Ready to accept connections|Sentinel ID is/;
    await waitFor(`redis-server on port ${port}`, () => {
      if (child.exitCode !== null) throw new Error(output);
      return ready.test(output);
    });
    const tls = this.certificates === null ? {} : { tls: { ca: this.certificates.ca } };
    const client = new Redis({ port, host: '127.0.0.1', ...tls, ...options, lazyConnect: true });
    client.on('error', () => undefined);
    this.clients.set(port, client);
  }

  private listening(port: number): string[] {
    if (this.certificates === null) return [`port ${port}`];
    const { certFile, keyFile, caFile } = this.certificates;
    return [
      ...['port 0', `tls-port ${port}`, 'tls-auth-clients no', 'tls-replication yes', 'tls-cluster yes'],
      ...[`tls-cert-file ${certFile}`, `tls-key-file ${keyFile}`, `tls-ca-cert-file ${caFile}`],
    ];
  }

  look(port: number): Redis {
    const client = this.clients.get(port);
    if (client === undefined) throw new Error(`nothing was started on port ${port}`);
    return client;
  }

  async kill(port: number): Promise<void> {
    this.clients.get(port)?.disconnect();
    const child = this.children.get(port);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  fleet(url: string): RedisFleet {
    const ports = [...this.children.keys()];
    return {
      url,
      ports,
      look: (port) => this.look(port),
      kill: (port) => this.kill(port),
      stop: async () => {
        await Promise.all(ports.map((port) => this.kill(port)));
        await Promise.all(this.folders.map((folder) => rm(folder, { recursive: true, force: true })));
      },
    };
  }
}

async function freePorts(count: 3): Promise<[number, number, number]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports] as [number, number, number];
}
