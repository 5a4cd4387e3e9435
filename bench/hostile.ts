/**
 * npm run bench:hostile [-- --only TEXT]
 *
 * Sends harmful files to the real service from one environment, and posts single events from
 * another environment. Compares how long the events take during each attack and on an idle service.
 * Also prints the memory of the server process.
 */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { createEnvironment } from '../src/access/environment-store.ts';
import { createApiKey } from '../src/access/key-store.ts';
import { createDatabase } from '../src/postgres/database.ts';
import { createPool } from '../src/postgres/pool.ts';
import { blankRecords, hostileFiles } from '../test/support/files/hostile-files.ts';
import { apiKey, type Service, startService } from './service.ts';

const { values: flags } = parseArgs({ options: { only: { type: 'string', default: '' } } });

/** Milliseconds for which the same file is sent again and again. */
const attackMs = 3_000;
const idleMs = 6_000;
/**
 * Minimum and maximum pause between attacks. The pause ends when an event takes about as long as on
 * an idle service.
 */
const restMs = 1_000;
const maxRestMs = 30_000;
/** Milliseconds between two events. */
const paceMs = 5;
const uploadsAtOnce = 16;

interface Answered {
  readonly status: number;
  readonly body: string;
}

/** A separate thread sends harmful files, so a delayed event means that the server was slow. */
interface Target {
  readonly address: string;
  readonly key: string;
}

type Send = (
  method: string,
  path: string,
  headers: Record<string, string>,
  body: Buffer,
) => Promise<Answered>;

/** Files that every tenant may send, for comparison with the harmful files. */
const ordinaryFiles = [8, 80].map((megabytes) => ({
  name: `ordinary: a CSV of ${megabytes} MB`,
  contentType: 'text/csv',
  make: () => Buffer.from(`user_id,plan,seats\n${'u1234567,growth,12\n'.repeat((megabytes * 1e6) / 19)}`),
}));

const agent = new Agent({ keepAlive: true });

function sender({ address, key }: Target): Send {
  return (method, path, headers, body) =>
    new Promise((resolve, reject) => {
      const all = { authorization: `Token ${key}`, 'content-length': body.length, ...headers };
      const sending = request(new URL(path, address), { method, agent, headers: all }, async (response) => {
        let text = '';
        for await (const piece of response) text += String(piece);
        resolve({ status: response.statusCode ?? 0, body: text });
      });
      // The server may refuse the upload before it has the whole body.
      sending.on('error', (error) => reject(error));
      sending.end(body);
    });
}

/**
 * Posts events until the returned function is called. This function returns how long each event
 * took.
 */
function startEvents(send: Send): () => Promise<number[]> {
  let isStopped = false;
  const event = Buffer.from('{"user_id":"u1","event_name":"opened","metadata":{"via":"bench"}}');
  const times: number[] = [];
  const one = async (): Promise<void> => {
    const startedAt = performance.now();
    const { status } = await send('POST', '/v1/track', { 'content-type': 'application/json' }, event);
    times.push(status === 202 ? performance.now() - startedAt : Number.POSITIVE_INFINITY);
  };
  const posting = (async () => {
    const pending: Promise<void>[] = [];
    while (!isStopped) {
      pending.push(one());
      await delay(paceMs);
    }
    await Promise.all(pending);
    return times;
  })();
  return () => {
    isStopped = true;
    return posting;
  };
}

const at = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;

/** Carries out an attack, and returns the distinct responses. */
type Attack = () => Promise<string>;

interface NamedAttack {
  readonly name: string;
  /** Prepares the attack before the measurement starts. */
  readonly prepare: () => unknown;
  readonly run: Attack;
}

function attacks(send: Send): NamedAttack[] {
  const codeOf = async (answer: Promise<Answered>): Promise<string> => {
    try {
      const { status, body } = await answer;
      const code = /"error_code":\s*"([a-z_]+)"/.exec(body)?.[1];
      return code === undefined ? String(status) : `${status} ${code}`;
    } catch (error) {
      return String((error as { code?: string }).code ?? error);
    }
  };
  const all: NamedAttack[] = [];
  for (const { name, contentType, make } of [...ordinaryFiles, ...hostileFiles]) {
    let file: Buffer | null = null;
    const prepare = () => (file ??= make());
    const post = (path: string) => codeOf(send('POST', path, { 'content-type': contentType }, prepare()));
    all.push({ name, prepare, run: () => post('/v1/imports?dry_run=true&if_duplicate=load') });
    all.push({ name: `${name}, inspected`, prepare, run: () => post('/v1/imports/inspect') });
    all.push({
      name: `${name}, ${uploadsAtOnce} at once`,
      prepare,
      run: async () => {
        const one = () => post('/v1/imports?dry_run=true&if_duplicate=load');
        return [...new Set(await Promise.all(Array.from({ length: uploadsAtOnce }, one)))].join(', ');
      },
    });
  }
  let refusedJob = '';
  all.push({
    name: 'causes of records of blanks',
    prepare: async () => {
      refusedJob = await loadBlanks(send);
    },
    run: () =>
      codeOf(send('GET', `/v1/background_jobs/${refusedJob}/rejects?group_by=cause`, {}, Buffer.alloc(0))),
  });
  return all;
}

async function loadBlanks(send: Send): Promise<string> {
  const headers = { 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' };
  const { job_id } = JSON.parse((await send('POST', '/v1/imports', headers, blankRecords())).body) as {
    job_id: string;
  };
  for (;;) {
    const { body } = await send('GET', `/v1/background_jobs/${job_id}`, {}, Buffer.alloc(0));
    if (/"status":\s*"(?:completed|failed)"/.test(body)) return job_id;
    await delay(100);
  }
}

function takePeakMib(pid: number): number {
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  return Math.round(Number(peak) / 1_024);
}

async function run(service: Service, events: Send, hostile: readonly NamedAttack[]): Promise<void> {
  const measureIdle = async (ms: number) => {
    const stop = startEvents(events);
    await delay(ms);
    return at(await stop(), 0.99);
  };
  await measureIdle(idleMs);
  const idle = await measureIdle(idleMs);
  process.stdout.write(`idle: p99 ${idle.toFixed(1)} ms, ${takePeakMib(service.pid)} MiB\n`);
  for (const { name, prepare, run } of hostile) {
    if (!name.includes(flags.only)) continue;
    await prepare();
    // Without this pause, memory of the previous attack would count for this one.
    const restedBy = performance.now() + maxRestMs;
    while ((await measureIdle(restMs)) > 1.5 * idle && performance.now() < restedBy);
    takePeakMib(service.pid);
    const stop = startEvents(events);
    const until = performance.now() + attackMs;
    const answers = new Set<string>();
    let rounds = 0;
    do {
      answers.add(await run());
      rounds++;
    } while (performance.now() < until);
    const seconds = (performance.now() - until + attackMs) / 1_000;
    const times = await stop();
    const p99 = at(times, 0.99);
    const figures = `p99 ${p99.toFixed(1)} ms, ${(p99 / idle).toFixed(1)} × idle, most ${at(times, 1).toFixed(0)} ms, ${takePeakMib(service.pid)} MiB`;
    process.stdout.write(
      `${name}: ${figures}; ${rounds} in ${seconds.toFixed(1)} s: ${[...answers].join(', ')}\n`,
    );
  }
}

/** Tells the sending thread which attack to run, and which step of the attack. */
interface Order {
  readonly number: number;
  readonly step: 'prepare' | 'run';
}

function serveAttacks(target: Target): void {
  const all = attacks(sender(target));
  parentPort?.on('message', async ({ number, step }: Order) => {
    const answer = await all[number]?.[step]();
    parentPort?.postMessage(step === 'run' ? answer : '');
  });
}

function startAttacker(target: Target): readonly NamedAttack[] {
  const worker = new Worker(new URL(import.meta.url), { workerData: target });
  const order = async (message: Order): Promise<string> => {
    worker.postMessage(message);
    const [answer] = (await once(worker, 'message')) as [string];
    return answer;
  };
  return attacks(sender(target)).map(({ name }, number) => ({
    name,
    prepare: () => order({ number, step: 'prepare' }),
    run: () => order({ number, step: 'run' }),
  }));
}

async function main(): Promise<void> {
  const service = await startService({ WORKERS: '1', MAX_EVENT_LOOP_DELAY_MS: '0' });
  const pool = createPool({ url: service.databaseUrl, max: 2, applicationName: 'bench' });
  try {
    const { address } = service;
    const db = createDatabase(pool);
    const { environmentId } = await createEnvironment(db, 'hostile');
    const { key } = await createApiKey(db, environmentId, { label: 'bench' });
    await run(service, sender({ address, key: apiKey }), startAttacker({ address, key }));
  } finally {
    await pool.end();
    await service.stop();
  }
  process.exit();
}

if (isMainThread) await main();
else serveAttacks(workerData as Target);
