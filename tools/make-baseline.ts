/**
 * `npx tsx tools/make-baseline.ts` stores data of this version in `test/baselines/<version>/` for
 * `test/acceptance/baseline.test.ts`: a dump, the uploaded files and an export. The installed
 * PostgreSQL must be the oldest that sluice supports.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../src/base/package-root.ts';
import { startSystemPostgres } from '../test/support/servers/system-postgres.ts';

const { version } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8'));
const target = join(packageRoot, 'test', 'baselines', version);
const apiKey = 'baseline-key-baseline-key-baseline-key';
const headers = { authorization: `Token ${apiKey}`, 'content-type': 'application/json' };

interface Job {
  readonly job_id: string;
  readonly status: string;
}

/** Methods throw unless the call succeeds. */
class Client {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async send(method: string, path: string, body?: unknown, type = 'application/json'): Promise<Response> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const init = { method, headers: { ...headers, 'content-type': type } };
    const response = await fetch(this.#url + path, body === undefined ? init : { ...init, body: text });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  async run(
    method: string,
    path: string,
    body: unknown,
    type?: string,
    status = 'completed',
  ): Promise<string> {
    const { job_id } = (await (await this.send(method, path, body, type)).json()) as Job;
    for (;;) {
      const job = (await (await this.send('GET', `/v1/background_jobs/${job_id}`)).json()) as Job;
      if (job.status === status) return job_id;
      if (['failed', 'cancelled', 'completed'].includes(job.status)) throw new Error(JSON.stringify(job));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  load(name: string, options: string, text: string, status?: string): Promise<string> {
    const type = name.endsWith('.csv') ? 'text/csv' : 'application/x-ndjson';
    return this.run('POST', `/v1/imports?filename=${name}&${options}`, text, type, status);
  }

  async export(): Promise<Readonly<Record<string, string>>> {
    const jobId = await this.run('POST', '/api/v1/analytics/exports', {
      format: 'ndjson',
      compression: 'none',
      include_removed: true,
    });
    const path = `/api/v1/analytics/exports/jobs/${jobId}`;
    const job = (await (await this.send('GET', path)).json()) as {
      presigned_urls: readonly { filename: string; url: string }[];
    };
    const files: Record<string, string> = {};
    for (const { filename, url } of job.presigned_urls) files[filename] = await (await fetch(url)).text();
    return files;
  }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);
const users = (plan: (n: number) => string, count = 40): string =>
  [
    'user_id,name,plan,company_id',
    ...numbers(count).map((n) => `u${n},"User, ${n}",${plan(n)},c${n % 4}`),
  ].join('\n');
const events = numbers(60).map((n) => ({
  event_type: 'track',
  user_id: `u${(n % 40) + 1}`,
  event_name: n % 3 === 0 ? 'paid' : 'opened',
  event_id: `e${n}`,
  inserted_at: `2026-0${(n % 3) + 1}-15T10:00:00Z`,
  metadata: { n, amount: n / 8 },
}));

/** Returns the facts that later versions will check. */
async function fill(client: Client): Promise<object> {
  await client.send('PUT', '/v1/rules', {
    file: 'users:\n  properties:\n    plan: { type: text, otherwise: report }\n',
  });
  await client.send('POST', '/v1/segments', {
    key: 'pros',
    title: 'Pros',
    definition: { property: 'plan', equals: 'pro' },
  });
  await client.load('users.csv', 'entity=users', `${users(() => 'free')}\n,Nobody,free,\nu99,short\n`);
  await client.load('events.ndjson', '', events.map((event) => JSON.stringify(event)).join('\n'));
  const changed = await client.load(
    'changed.csv',
    'entity=users',
    users((n) => (n % 2 === 0 ? 'pro' : 'free')),
  );
  const mirrored = 'company_id,size\nc0,1\nc1,2\nc2,3\n';
  await client.load('companies.csv', 'entity=companies&mirror=remove', mirrored);
  await client.send('POST', '/v1/identify', { user_id: 'single', metadata: { plan: 'pro' } });
  const track = {
    user_id: 'single',
    event_name: 'paid',
    event_id: 's1',
    inserted_at: '2026-03-01T00:00:00Z',
  };
  await client.send('POST', '/v1/track', track);
  await client.run('DELETE', '/v1/users', { users: ['u40'], suppress: true });
  const plan = await client.load(
    'plan.csv',
    'entity=users&plan=true',
    users(() => 'planned', 5),
  );
  const guard = encodeURIComponent(JSON.stringify({ rows: '100..' }));
  const heldLoad = await client.load(
    'held.csv',
    `entity=users&guard=${guard}`,
    users(() => 'held', 3),
    'held',
  );
  await client.send('PUT', '/v1/schedules/nightly', {
    file: 'cron: "0 3 * * *"\nexport: { range: since_last_success }\n',
  });
  return { changed, plan, held: heldLoad, files: await client.export() };
}

async function addressOf(child: ChildProcess): Promise<string> {
  if (child.stdout !== null)
    for await (const line of createInterface({ input: child.stdout })) {
      const address = /listens on (http:\S+)/.exec(line)?.[1];
      if (address !== undefined) return address;
    }
  throw new Error('the service ended before it listened');
}

if (existsSync(target)) {
  process.stdout.write(`${target} is kept as it is; remove it to make it anew\n`);
  process.exit();
}
const server = await startSystemPostgres();
const folder = await mkdtemp(join(tmpdir(), 'sluice-baseline-'));
try {
  const databaseUrl = server.urlOf('baseline');
  await server.query(
    'postgres',
    `create database baseline template template0 encoding 'UTF8' locale 'C.UTF-8'`,
  );
  const child = spawn(process.execPath, [join(packageRoot, 'dist/bundle/main.js'), 'start'], {
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: databaseUrl,
      DATA_DIR: folder,
      PORT: '0',
      API_KEY: apiKey,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const facts = await fill(new Client(await addressOf(child)));
  child.kill('SIGTERM');
  await once(child, 'exit');
  await mkdir(target, { recursive: true });
  const options = ['--schema=sluice', '--inserts', '--no-owner', '--no-privileges', '--no-comments'];
  server.run('pg_dump', ...options, `--file=${server.scratch('dump.sql')}`, databaseUrl);
  // A server cannot execute the commands of psql.
  const text = (await readFile(server.scratch('dump.sql'), 'utf8')).replace(/^\\.*\n/gm, '');
  await writeFile(join(target, 'database.sql'), text);
  await writeFile(join(target, 'facts.json'), `${JSON.stringify(facts, null, 2)}\n`);
  await cp(join(folder, 'files'), join(target, 'files'), { recursive: true });
  await rm(join(target, 'files', 'exports'), { recursive: true });
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
