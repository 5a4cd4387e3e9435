import { ConfigError } from './errors.ts';

interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** Parsed REDIS_URL. Do not log it: it contains passwords. */
export interface RedisTarget {
  readonly kind: 'server' | 'sentinel' | 'cluster';
  /**
   * Addresses of the server, of the sentinels, or of some servers of the cluster. There is at least
   * one.
   */
  readonly nodes: readonly RedisNode[];
  readonly tls: boolean;
  /** User of the data servers. The sentinels have their own user. */
  readonly username: string | null;
  readonly password: string | null;
  readonly db: number;
  /** Kind of addresses to use: IPv4 (4), IPv6 (6), or `null` for both. */
  readonly family: number | null;
  readonly sentinel: {
    readonly name: string;
    readonly username: string | null;
    readonly password: string | null;
  } | null;
}

type Kind = RedisTarget['kind'];

const form =
  /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;
const nodeForm = /^(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i;
const nameForm = /^[\w.-]{1,200}$/;

const defaultPorts: Readonly<Record<Kind, number>> = { server: 6_379, sentinel: 26_379, cluster: 6_379 };
const parameters: Readonly<Record<Kind, readonly string[]>> = {
  server: ['db', 'family'],
  sentinel: ['db', 'family', 'sentinel_username', 'sentinel_password'],
  cluster: ['family'],
};

/**
 * Parses REDIS_URL.
 * @throws ConfigError, whose message omits the URL because it may contain a password
 */
export function readRedisUrl(url: string): RedisTarget {
  const match = form.exec(url);
  if (match === null) {
    throw wrong(
      'redis://host:port, redis+sentinel://host:port,host:port/master or redis+cluster://host:port,host:port is wanted (rediss… for TLS)',
    );
  }
  const [, scheme = '', way, user, hosts = '', path = '', query = ''] = match;
  const kind = (way?.toLowerCase() ?? 'server') as Kind;
  const values = readParameters(kind, query);
  const [username, password] = readUser(user);
  return {
    kind,
    nodes: readNodes(kind, hosts),
    tls: scheme.toLowerCase() === 'rediss',
    username,
    password,
    db: readDb(kind, path, values),
    family: readFamily(values.get('family')),
    sentinel: kind === 'sentinel' ? readSentinel(path, values) : null,
  };
}

export function describeRedis({ kind, nodes, sentinel }: RedisTarget): string {
  const hosts = nodes
    .map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
    .join(', ');
  if (kind === 'sentinel') return `${sentinel?.name} (sentinels ${hosts})`;
  return kind === 'cluster' ? `${hosts} (cluster)` : hosts;
}

function readNodes(kind: Kind, hosts: string): RedisNode[] {
  const nodes = hosts.split(',').map((text) => {
    const [, host, port] = nodeForm.exec(text) ?? [];
    if (host === undefined) throw wrong('each host is wanted as host or host:port, with commas in between');
    return { host: host.replace(/^\[|\]$/g, ''), port: readPort(port, defaultPorts[kind]) };
  });
  if (nodes.length > 1 && kind === 'server')
    throw wrong('several hosts make sense with redis+sentinel:// and redis+cluster:// only');
  return nodes;
}

function readPort(text: string | undefined, fallback: number): number {
  const port = text === undefined ? fallback : Number(text);
  if (port >= 1 && port <= 65_535) return port;
  throw wrong('a port is a whole number from 1 to 65535');
}

function readUser(text: string | undefined): [string | null, string | null] {
  if (text === undefined) return [null, null];
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? [];
  return [decode(user), decode(password)];
}

function decode(text: string): string | null {
  try {
    return text === '' ? null : decodeURIComponent(text);
  } catch {
    throw wrong('in user and password a % is written %25');
  }
}

function readParameters(kind: Kind, query: string): URLSearchParams {
  const values = new URLSearchParams(query);
  for (const name of new Set(values.keys())) {
    if (!parameters[kind].includes(name)) {
      const names = parameters[kind].join(', ');
      throw wrong(`unknown parameter ${JSON.stringify(name.slice(0, 50))}; there are ${names}`);
    }
    if (values.getAll(name).length > 1) throw wrong(`the parameter ${name} is given twice`);
  }
  return values;
}

function readDb(kind: Kind, path: string, values: URLSearchParams): number {
  if (kind === 'cluster' && path !== '' && path !== '0') throw wrong('a cluster has no databases but 0');
  const text = values.get('db') ?? (kind === 'server' && path !== '' ? path : '0');
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw wrong('the database is a whole number');
}

function readFamily(text: string | null): number | null {
  if (text === null || text === '0') return null;
  if (text === '4' || text === '6') return Number(text);
  throw wrong('family is 0, 4 or 6');
}

function readSentinel(path: string, values: URLSearchParams): RedisTarget['sentinel'] {
  if (!nameForm.test(path))
    throw wrong('behind the sentinels the name of the master is wanted, as in /mymaster');
  return {
    name: path,
    username: values.get('sentinel_username'),
    password: values.get('sentinel_password'),
  };
}

function wrong(rule: string): ConfigError {
  return new ConfigError(`REDIS_URL: ${rule}`);
}
