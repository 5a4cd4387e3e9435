import { sql } from 'kysely';
import { beginJob, chunkJob, finishJob } from '../../../jobs/load.ts';
import { createEnvironment } from '../../../src/access/environment-store.ts';
import { MAX_REJECT_RAW_BYTES } from '../../../src/base/limits.ts';
import type { Entity } from '../../../src/domain/entity.ts';
import {
  defaultLoadOptions,
  endedStatuses,
  type LoadOptions,
  type StoredFormat,
} from '../../../src/domain/load.ts';
import type { Reject } from '../../../src/domain/reject.ts';
import { acceptLoad } from '../../../src/load/accept.ts';
import type { LoadContext } from '../../../src/load/context.ts';
import { startLane } from '../../../src/load/end.ts';
import { type Load, requireLoad } from '../../../src/load/read-store.ts';
import { receive } from '../../../src/load/receive/receive.ts';
import { receivingStore } from '../../../src/load/received.ts';
import { readRejectsPage } from '../../../src/load/rejects/store.ts';
import { runTaskById, type StopSignals } from '../../../src/tasks/run-task.ts';
import type { TaskKind } from '../../../src/tasks/task-kind.ts';
import type { Profiles, StoredProfile } from '../oracles/serial-oracle.ts';
import { runDueTasks } from '../servers/tasks.ts';
import { waitFor } from '../wait-for.ts';

export interface FileOptions extends Partial<LoadOptions> {
  /** Size of a chunk in bytes. 1 creates one chunk per record. */
  readonly chunkBytes?: number;
  /** File name. Default: users.csv, or users.ndjson if the content starts with `{`. */
  readonly filename?: string;
  /** Format of the file. Default: the detected format. */
  readonly format?: StoredFormat;
  readonly idempotencyKey?: string;
}

const limits = { maxUploadBytes: 1e12, maxInflatedBytes: 1e12, minBytesPerSecond: 0, stallMs: 20_000 };

/**
 * Accepts a file with the steps of the upload route, beginning with `receive`. Workers then run the
 * job. Returns the job's id.
 */
export async function acceptFile(
  context: LoadContext,
  environmentId: number,
  content: string | Uint8Array,
  options: FileOptions = {},
): Promise<string> {
  const { chunkBytes, filename, format, idempotencyKey, ...load } = options;
  const bytes = Buffer.from(content as string);
  const name = filename ?? (bytes[0] === 0x7b ? 'users.ndjson' : 'users.csv');
  async function* source() {
    yield bytes;
  }
  const signal = new AbortController().signal;
  const hints = { chunkBytes, filename: name, format, source: load.source, map: load.map };
  const received = await receive(source(), receivingStore(context), hints, limits, signal);
  const { jobId } = await acceptLoad(context, {
    environmentId,
    type: 'import',
    filename: name,
    received,
    options: { ...defaultLoadOptions, ...load },
    idempotencyKey: idempotencyKey ?? null,
  });
  return jobId;
}

export async function loadFile(
  context: LoadContext,
  environmentId: number,
  content: string | Uint8Array,
  options: FileOptions = {},
): Promise<Load> {
  return runJob(
    context,
    environmentId,
    await acceptFile(withoutQueue(context), environmentId, content, options),
  );
}

/** Runs due tasks of loads until the job has ended or no task is due. */
export async function runJob(context: LoadContext, environmentId: number, jobId: string): Promise<Load> {
  const quiet = withoutQueue(context);
  let load: Load;
  let count: number;
  do {
    await startLane(quiet, environmentId);
    count = await runDueTasks(quiet, [beginJob, chunkJob, finishJob]);
    load = await requireLoad(quiet, environmentId, jobId);
  } while (count > 0 && (load.status === 'queued' || load.status === 'processing'));
  return load;
}

/** A load that no worker runs. The test runs its steps, in any order. */
export interface ManualLoad {
  readonly jobId: string;
  readonly loadId: number;
  readonly chunkCount: number;
  /** If the load starts over, runs its task `begin`, so that its chunks can run. */
  begin(context?: LoadContext): Promise<Load>;
  chunk(chunkNo: number, context?: LoadContext): Promise<void>;
  finish(context?: LoadContext): Promise<Load>;
  look(): Promise<Load>;
}

/**
 * Accepts a file and starts its load without notifying the queue. No worker may be running, because
 * it would claim the chunks.
 */
export async function startManually(
  context: LoadContext,
  environmentId: number,
  content: string | Uint8Array,
  options: FileOptions = {},
): Promise<ManualLoad> {
  const quiet = withoutQueue(context);
  const jobId = await acceptFile(quiet, environmentId, content, options);
  await startLane(quiet, environmentId);
  return manualLoad(quiet, environmentId, jobId);
}

export async function manualLoad(
  context: LoadContext,
  environmentId: number,
  jobId: string,
): Promise<ManualLoad> {
  const quiet = withoutQueue(context);
  const { load_id, chunk_count } = await context.db
    .selectFrom('loads')
    .select(['load_id', 'chunk_count'])
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
  const look = () => requireLoad(quiet, environmentId, jobId);
  return {
    jobId,
    loadId: load_id,
    chunkCount: chunk_count,
    begin: async (taskContext = quiet) => {
      await runTaskOf(taskContext, beginJob, load_id);
      return look();
    },
    chunk: (chunkNo, taskContext = quiet) => runTaskOf(taskContext, chunkJob, load_id, chunkNo),
    finish: async (taskContext = quiet) => {
      await runTaskOf(taskContext, finishJob, load_id);
      return look();
    },
    look,
  };
}

/**
 * Runs all chunks, by default in the order of the file, and then `finish`. If the load needs
 * another pass, as a load with a guard does, repeats all steps.
 */
export async function runManually(load: ManualLoad, order?: readonly number[]): Promise<Load> {
  const { pass } = await load.begin();
  for (const chunkNo of order ?? Array.from({ length: load.chunkCount }, (_, index) => index)) {
    await load.chunk(chunkNo);
  }
  const ended = await load.finish();
  return ended.status === 'processing' && ended.pass !== pass ? runManually(load, order) : ended;
}

/** Returns the chunk numbers in an order that `ranks` determines, such as a random one. */
export function shuffled({ chunkCount }: ManualLoad, ranks: readonly number[]): number[] {
  const rank = (chunk: number): number => ranks[chunk % ranks.length] ?? 0;
  return Array.from({ length: chunkCount }, (_, chunk) => chunk).sort((a, b) => rank(a) - rank(b) || a - b);
}

/**
 * Runs the chunks in the given order, up to `atOnce` of them concurrently, and then `finish`. As in
 * a worker, a chunk released after a deadlock runs again.
 */
export async function runAtOnce(load: ManualLoad, order: readonly number[], atOnce: number): Promise<Load> {
  for (let round = 0; round < 5; round++) {
    const pending = [...order];
    const run = async () => {
      for (let next = pending.shift(); next !== undefined; next = pending.shift()) await load.chunk(next);
    };
    await Promise.all(Array.from({ length: atOnce }, run));
    const { tally, totalRows } = await load.look();
    if (tally.read === totalRows) break;
  }
  return load.finish();
}

const nothing = async (): Promise<void> => undefined;

/**
 * Returns a copy of the context that never notifies the queue. Tests use it when they run the steps
 * of a job themselves.
 */
export function withoutQueue<T extends LoadContext>(context: T): T {
  return { ...context, queue: { notify: nothing } };
}

/**
 * Runs the task of a subject (such as a load), even if it is not due. Does nothing if the subject
 * has no task.
 */
export async function runTaskOf<T extends LoadContext>(
  context: T,
  kind: TaskKind<T>,
  subjectId: number,
  part = 0,
  signals?: StopSignals,
): Promise<void> {
  const task = await context.db
    .selectFrom('tasks')
    .select('task_id')
    .where('kind', '=', kind.name)
    .where('subject_id', '=', subjectId)
    .where('part', '=', part)
    .executeTakeFirst();
  if (task !== undefined) await runTaskById(withoutQueue(context), kind, task.task_id, signals);
}

/** Expires leases, as if their workers had sent no heartbeat for too long. */
export async function expireLeases({ db }: Pick<LoadContext, 'db'>, subjectId?: number): Promise<void> {
  await sql`
    update tasks set lease_until = now() - interval '1 second'
    where lease_until is not null and subject_id = coalesce(${subjectId ?? null}, subject_id)`.execute(db);
}

export function endedLoad(context: LoadContext, environmentId: number, jobId: string): Promise<Load> {
  return waitFor(
    `job ${jobId} to end`,
    async () => {
      const load = await requireLoad(context, environmentId, jobId);
      return (endedStatuses as readonly string[]).includes(load.status) ? load : null;
    },
    { everyMs: 5 },
  );
}

export async function readProfiles(context: LoadContext, environmentId: number): Promise<Profiles> {
  const users = await context.db
    .selectFrom('users')
    .select(['user_id', 'company_id', 'metadata'])
    .where('environment_id', '=', environmentId)
    .orderBy('user_id')
    .execute();
  const companies = await context.db
    .selectFrom('companies')
    .select(['company_id', 'metadata'])
    .where('environment_id', '=', environmentId)
    .orderBy('company_id')
    .execute();
  return {
    users: Object.fromEntries(
      users.map((row) => [row.user_id, { metadata: row.metadata, company: row.company_id } as StoredProfile]),
    ),
    companies: Object.fromEntries(
      companies.map((row) => [row.company_id, { metadata: row.metadata } as StoredProfile]),
    ),
  };
}

/**
 * Returns the place (ctid) and the last writer (xmin) of each row, by a key such as `users/u1`. If
 * a later call returns a different pair, the row has been rewritten.
 */
export async function readVersions(
  context: LoadContext,
  environmentId: number,
): Promise<Record<string, string>> {
  const versions: [string, string][] = [];
  for (const [entity, id] of [
    ['users', 'user_id'],
    ['companies', 'company_id'],
  ] as const satisfies [Entity, string][]) {
    const { rows } = await sql<{ id: string; version: string }>`
      select ${sql.ref(id)} as id, ctid::text || ' by ' || xmin::text as version
      from ${sql.table(entity)}
      where environment_id = ${environmentId}`.execute(context.db);
    for (const row of rows) versions.push([`${entity}/${row.id}`, row.version]);
  }
  return Object.fromEntries(versions);
}

export async function readRejects(context: LoadContext, jobId: string): Promise<Reject[]> {
  const { load_id } = await context.db
    .selectFrom('loads')
    .select('load_id')
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
  const all = { rows: 100_000, bytes: Number.MAX_SAFE_INTEGER, rawBytes: MAX_REJECT_RAW_BYTES };
  const { rejects } = await readRejectsPage(context.db, load_id, 0, all);
  return rejects.map(({ isCut: _, ...reject }) => reject);
}

/** Counts the temporary rows of a load. None may remain once the load has ended. */
export async function countLeftovers(context: LoadContext, jobId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select (
      (select count(*) from load_chunk_keys join loads using (load_id) where job_id = ${jobId}) +
      (select count(*) from load_replays join loads using (load_id) where job_id = ${jobId})
    )::int as count`.execute(context.db);
  return rows[0]?.count ?? -1;
}

let environments = 0;

export function nextEnvironmentName(): string {
  return `e${++environments}`;
}

export async function newEnvironment({ db }: Pick<LoadContext, 'db'>): Promise<number> {
  return (await createEnvironment(db, nextEnvironmentName())).environmentId;
}
