import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import {
  exampleVariables,
  makeSecrets,
  readCompose,
  type Service,
  withSecrets,
} from '../support/servers/compose.ts';
import { connectTo } from '../support/servers/connect.ts';
import { freePort } from '../support/servers/free-port.ts';
import { buildImage, type Image } from '../support/servers/image.ts';
import { createEmptyDatabase } from '../support/servers/postgres.ts';
import { SluiceProcess } from '../support/servers/processes.ts';
import { redisAvailable } from '../support/servers/redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { temporaryFolder } from './cli.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

test('the services of docker-compose.yml, run without an engine, migrate, load a file, export it and load a dropped file', async () => {
  const [image, { services }] = await Promise.all([
    temporaryFolder().then(buildImage),
    exampleVariables().then(readCompose),
  ]);
  const host = await temporaryFolder();
  await chmod(host, 0o755);
  const [database, port, secrets] = await Promise.all([createEmptyDatabase(), freePort(), makeSecrets(host)]);
  // In Docker, every account can read mounted secrets. The test therefore lets every account read
  // its folder of secrets.
  await chmod(secrets, 0o755);
  const redisUrl = await startRedisOf(services['redis'], secrets);
  // In Docker, these two secrets refer to containers by name. Here, they contain addresses on this
  // machine instead.
  await writeFile(join(secrets, 'database_url'), database.url);
  await writeFile(join(secrets, 'redis_url'), redisUrl);
  const mounts = ['data', 'inbox'].map((name) => join(host, name));
  const [DATA_DIR = '', INBOX_DIR = ''] = mounts;
  for (const folder of mounts) await mkdir(folder).then(() => chmod(folder, 0o777));
  const here: Record<string, string> = {
    ...{ DATA_DIR, INBOX_DIR },
    INBOX_STABLE_MS: '100',
    PORT: String(port),
    PUBLIC_URL: `http://127.0.0.1:${port}`,
  };
  const run = (name: string, part: Part, command = services[name]?.command): SluiceProcess => {
    const service = services[name];
    if (service === undefined) throw new Error(`there is no ${name}`);
    const environment = withSecrets(service.environment, secrets);
    const local = { ...service, ...(command && { command }), environment };
    return runPart(image, name, local, part, here);
  };
  const exitCode = (name: string, part: Part): Promise<string> => ended(run(name, part));
  expect(await exitCode('serve', 'healthcheck')).toBe('exit code 1');
  expect(await exitCode('migrate', 'program')).toBe('exit code 0');
  expect(await exitCode('work', 'healthcheck')).toBe('exit code 1');

  const server = run('serve', 'program');
  const worker = run('work', 'program');
  await server.prints(/made\. It is in .*first-key/);
  const key = (await readFile(join(DATA_DIR, 'first-key'), 'utf8')).trim();
  const url = `http://127.0.0.1:${port}`;
  await waitFor('the server', async () => (await call(url, null, '/health/ready')).ok);
  await waitFor('the worker to sign on', async () => (await lastSeen(database.url)) !== undefined);
  expect(await Promise.all([exitCode('serve', 'healthcheck'), exitCode('work', 'healthcheck')])).toEqual([
    'exit code 0',
    'exit code 0',
  ]);
  const { job_id: jobId } = await upload(url, key, usersCsv(2_000));
  expect(await jobEnded(url, key, jobId)).toMatchObject({ status: 'completed', counts: { inserted: 2_000 } });
  expect(await exportedLines(url, key)).toBe(2_000);
  const folder = join(INBOX_DIR, 'default');
  // The worker that watches the inbox creates this folder.
  await waitFor('the folder of the environment', () => existsSync(folder));
  await writeFile(join(folder, 'dropped.csv'), 'user_id\ndropped\n');
  await waitFor('the dropped file', async () => {
    const users = await execute(database.url, `select from sluice.users where user_id = 'dropped'`);
    return users.length === 1;
  });

  // A worker that hangs remains listed, but its last heartbeat becomes too old.
  worker.signal('SIGSTOP');
  await execute(database.url, `update sluice.workers set seen_at = now() - interval '1 minute'`);
  expect(await exitCode('work', 'healthcheck')).toBe('exit code 1');
  worker.signal('SIGCONT');
  await Promise.all([worker.kill('SIGTERM'), server.kill('SIGTERM')]);
  expect([worker.ending, server.ending]).toEqual(['exit code 0', 'exit code 0']);
  expect(await exitCode('serve', 'healthcheck')).toBe('exit code 1');
});

type Part = 'program' | 'healthcheck';

/**
 * Runs a service or its health check as compose runs it in the image. If possible, uses an account
 * without any write permission.
 */
function runPart(
  image: Image,
  name: string,
  service: Service,
  part: Part,
  here: Readonly<Record<string, string>>,
): SluiceProcess {
  const check = service.healthcheck?.test ?? ['CMD', ...image.healthcheck];
  const program = [...(service.entrypoint ?? image.entrypoint), ...(service.command ?? [])];
  const [file, ...args] = part === 'healthcheck' ? check.slice(1) : program;
  expect(file).toBe('node');
  const environment: Record<string, string> = { ...image.environment, ...service.environment };
  for (const variable of Object.keys(environment))
    environment[variable] = here[variable] ?? environment[variable] ?? '';
  const child = spawn(process.execPath, args, {
    cwd: image.folder,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...image.account,
  });
  return new SluiceProcess(`${name} (${part})`, child);
}

async function ended(process: SluiceProcess): Promise<string> {
  return waitFor(`${process.name} to end`, () => process.ending);
}

/**
 * Starts the installed redis-server with the command of the Compose file. Returns its URL, or '' if
 * redis-server is not installed.
 */
async function startRedisOf(service: Service | undefined, secrets: string): Promise<string> {
  if (!redisAvailable) return '';
  const [program = '', ...options] = service?.command ?? [];
  expect(program).toBe('sh');
  const port = await freePort();
  const folder = await temporaryFolder();
  const localOptions = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder];
  // Skips the start script of the image. The script would only change the user and the owner of the
  // data.
  const here = options.map((text) =>
    text.replace('docker-entrypoint.sh ', '').replace('/run/secrets', secrets),
  );
  const child = spawn(program, [...here, ...localOptions], { stdio: 'ignore' });
  cleanups.push(() => endNow(child));
  const password = await readFile(join(secrets, 'redis_password'), 'utf8');
  const url = `redis://:${password}@127.0.0.1:${port}`;
  const redis = new Redis(url, { retryStrategy: () => 20 });
  redis.on('error', () => undefined);
  try {
    const names = ['maxmemory-policy', 'appendonly', 'appendfsync', 'maxmemory'];
    const answers = await Promise.all(names.map((name) => redis.config('GET', name)));
    const expected = ['noeviction', 'yes', 'everysec', '536870912'];
    expect(answers.map((answer) => (answer as string[])[1])).toEqual(expected);
  } finally {
    redis.disconnect();
  }
  return url;
}

async function endNow(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function exportedLines(url: string, key: string): Promise<number> {
  const path = '/api/v1/analytics/exports';
  const request = {
    method: 'POST',
    body: '{"event_type":["users"]}',
    headers: { 'content-type': 'application/json' },
  };
  const { job_id: jobId } = (await (await call(url, key, path, request)).json()) as {
    readonly job_id: string;
  };
  const link = await waitFor('the link', async () => {
    const job = (await (await call(url, key, `${path}/jobs/${jobId}`)).json()) as {
      readonly presigned_urls: readonly { readonly filename: string; readonly url: string }[];
    };
    return job.presigned_urls.find(({ filename }) => filename.startsWith('users.'))?.url;
  });
  expect(link.startsWith(`${url}/`)).toBe(true);
  const text = gunzipSync(Buffer.from(await (await fetch(link)).arrayBuffer())).toString();
  return text.trimEnd().split('\n').length;
}

async function lastSeen(url: string): Promise<unknown> {
  return (await execute(url, `select seen_at from sluice.workers where host = '${hostname()}'`))[0];
}

async function execute(url: string, sql: string): Promise<unknown[]> {
  return (await connectTo(url, (client) => client.query(sql))).rows;
}
