import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, realpath, rename } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { sql } from 'kysely';
import type { ExportFile } from '../../domain/export.ts';
import { requireExport } from '../../export/inspect-exports.ts';
import { requestExport } from '../../export/request-export.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../../postgres/database.ts';
import { insertRunItem, readRunItems } from '../../postgres/stores/schedule-run-items.ts';
import { setDeliveredTo, setRange } from '../../postgres/stores/schedule-runs.ts';
import { readExportedUntil } from '../../postgres/stores/schedules.ts';
import { holdRun, type RunAttempt, type ScheduleContext } from './context.ts';
import { type ExportRange, resolveRange } from './due-times.ts';
import { isBelow } from './local-files.ts';
import type { ScheduledExport } from './schedule.ts';
import { SourceFailure } from './source.ts';

const exportItem = 'export';

/**
 * Asks for the export; once it is completed, copies its files if they are wanted elsewhere. Returns 0, or the milliseconds until the
 * time of the run has come.
 */
export async function runExportRun(
  context: ScheduleContext,
  run: RunAttempt,
  work: ScheduledExport,
  timeZone: string,
  signal: AbortSignal,
): Promise<number> {
  const taken = (await readRunItems(context.db, run.runId)).find(({ item }) => item === exportItem);
  if (taken?.jobId != null) {
    if (work.toDir !== null) await deliverExport(context, run, taken.jobId, work.toDir, signal);
    return 0;
  }
  if (work.toDir !== null) findParent(context.schedules.exportRoots, work.toDir);
  const range = await findRange(context.db, run, work, timeZone);
  // Nothing lies between: an earlier due time is done after a later one.
  if (range?.from != null && Date.parse(range.from) >= Date.parse(range.to)) return 0;
  const earlyMs = range === null ? 0 : await untilCommitted(context, range.to);
  if (earlyMs > 0) return earlyMs;
  const body =
    range === null
      ? work.body
      : { ...work.body, to: range.to, ...(range.from !== null && { from: range.from }) };
  await requestExport(context, run.environmentId, body, null, {
    origin: { kind: 'schedule', name: run.name },
    retentionDays: work.retentionDays,
    inSameTransaction: async (db, jobId) => {
      await holdRun(db, run);
      await setRange(db, run.runId, range?.from ?? null, range?.to ?? null);
      const item = { item: exportItem, version: null, jobId, isNew: true, error: null };
      await insertRunItem(db, run.runId, item);
    },
  });
  return 0;
}

async function findRange(
  db: Database,
  run: RunAttempt,
  { range }: ScheduledExport,
  timeZone: string,
): Promise<ExportRange | null> {
  if (range === null) return null;
  return resolveRange(range, timeZone, run.dueAt, await readExportedUntil(db, run));
}

/**
 * Milliseconds until what is stored under a moment before `to` must have been committed, or it would be in this export or in none;
 * 0: it is. Records are stored under the moment that their transaction began or that they came in, which is not long before. The
 * snapshots of exports, archives and backups write none, and may be held for hours.
 */
async function untilCommitted({ db, schedules }: ScheduleContext, to: string): Promise<number> {
  const { rows } = await sql<{ early_ms: number; is_written: boolean }>`
    select
      extract(epoch from ${to}::timestamptz + ${schedules.commitLagMs} * interval '1 millisecond' - clock_timestamp())
        ::float8 * 1000 as early_ms,
      exists (
        select 1
        from pg_stat_activity
        where datname = current_database()
          and application_name like 'sluice %'
          and application_name !~ '^sluice (export [0-9]+:[0-9]+|export preview|archive|copy)$'
          and pid <> pg_backend_pid()
          and xact_start < ${to}::timestamptz
      ) as is_written`.execute(db);
  const [{ early_ms, is_written } = { early_ms: 0, is_written: false }] = rows;
  if (early_ms > 0) return Math.ceil(early_ms);
  return is_written ? 1_000 : 0;
}

/**
 * Copies the files of a completed export into a folder named by the due time, the manifest last: where it is, all is. Done
 * again it writes the same files.
 */
async function deliverExport(
  context: ScheduleContext,
  run: RunAttempt,
  jobId: string,
  toDir: string,
  signal: AbortSignal,
): Promise<void> {
  const { status, files } = await requireExport(context, run.environmentId, jobId);
  // The attempt that asked for it was lost. The run waits, and comes back when there is something to copy.
  if (status !== 'completed') return;
  if (files.length === 0) throw new SourceFailure('job_expired', 'the files of the export are gone');
  const folder = await makeFolder(context.schedules.exportRoots, toDir, run);
  for (const file of files) {
    signal.throwIfAborted();
    await copyFile(context, file, folder, signal);
  }
  await setDeliveredTo(context.db, run.claim, folder);
  context.log.info({ schedule: run.name, job_id: jobId, files: files.length }, 'export delivered');
}

/** Checked before there is an export, too: it would have been written for nobody. @throws SourceFailure */
function findParent(roots: readonly string[], toDir: string): { parent: string; root: string } {
  const parent = resolve(roots[0] ?? '/', toDir);
  const root = roots.find((each) => each === parent || isBelow(each, parent));
  if (root !== undefined) return { parent, root };
  throw outside();
}

async function makeFolder(roots: readonly string[], toDir: string, run: RunAttempt): Promise<string> {
  const { parent, root } = findParent(roots, toDir);
  const name = run.dueAt.toISOString().slice(0, 19).replaceAll(':', '');
  await mkdir(root, { recursive: true });
  const realRoot = await realpath(root);
  let folder = root;
  for (const part of relative(root, join(parent, `${run.name}-${name}Z`)).split(sep)) {
    folder = join(folder, part);
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    // A link on the way would lead elsewhere: nothing is made behind it. One to nowhere has no real path.
    const real = await realpath(folder).catch(() => null);
    if (real === null || !isBelow(realRoot, real)) throw outside();
  }
  return folder;
}

function outside(): SourceFailure {
  return new SourceFailure('outside_roots', 'to_dir leads out of the folders of SCHEDULES_EXPORT_ROOTS');
}

const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;

async function copyFile(
  { files }: ScheduleContext,
  { filename, ref, sha256 }: ExportFile,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const [unfinished, finished] = [join(folder, `.${filename}.unfinished`), join(folder, filename)];
  const target = await open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o640);
  const hash = createHash('sha256');
  try {
    for await (const bytes of files.open(ref as FileRef) as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      hash.update(bytes);
      await target.writeFile(bytes);
    }
    await target.sync();
  } finally {
    await target.close();
  }
  if (hash.digest('hex') !== sha256) throw new Error(`${filename} is not what its export wrote`);
  await rename(unfinished, finished);
}
