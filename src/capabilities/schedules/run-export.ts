import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, realpath, rename } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { InputError } from '../../base/errors.ts';
import type { ExportFile, ExportWarning } from '../../domain/export.ts';
import { requireExport } from '../../export/inspect-exports.ts';
import { requestExport } from '../../export/request-export.ts';
import type { FileRef } from '../../files/file-store.ts';
import { act, actingAs } from '../../postgres/acts.ts';
import { holdTask } from '../../tasks/store.ts';
import type { RunAttempt, ScheduleContext } from './context.ts';
import { resolveRange } from './due-times.ts';
import { insertRunItem, readRunItems } from './run-item-store.ts';
import { readCursor, setDeliveredTo, setRange } from './schedule-store.ts';
import { type ExportDefinition, requestOf } from './schema.ts';
import { isBelow, SourceFailure } from './source.ts';

const exportItem = 'export';

/**
 * Requests the export. If `to_dir` is set, a later call copies the files of the completed export.
 */
export async function runExportRun(
  context: ScheduleContext,
  run: RunAttempt,
  exported: ExportDefinition,
  timeZone: string,
  signal: AbortSignal,
): Promise<void> {
  const { range, to_dir: toDir } = exported;
  const request = (await readRunItems(context.db, run.runId)).find(({ item }) => item === exportItem);
  if (request?.jobId != null) {
    if (toDir !== undefined) await deliverExport(context, run, request.jobId, toDir, signal);
    return;
  }
  if (toDir !== undefined) findParent(context.schedules.exportRoots, toDir);
  if (range === 'since_last_success') return requestIncrement(context, run, exported);
  const resolved = range === undefined ? null : resolveRange(range, timeZone, run.dueAt);
  // If the due time is the start of a day or month, the range may be empty.
  if (resolved !== null && resolved.from === resolved.to) return;
  await requestJob(context, run, exported, { ...resolved });
}

async function requestIncrement(
  context: ScheduleContext,
  run: RunAttempt,
  exported: ExportDefinition,
): Promise<void> {
  const since = await readCursor(context.db, run);
  try {
    await requestJob(context, run, exported, { since });
  } catch (error) {
    if (!(error instanceof InputError) || error.problems[0].code !== 'cursor_expired') throw error;
    context.log.warn({ schedule: run.name, due_at: run.dueAt }, fullExport.message);
    await requestJob(context, run, exported, {}, [fullExport]);
  }
}

const fullExport = {
  message:
    'The cursor of the last export has expired: this export holds everything, but not what was removed',
  details: 'since_last_success',
};

const originOf = ({ name }: RunAttempt) => ({ kind: 'schedule', name }) as const;

async function requestJob(
  context: ScheduleContext,
  run: RunAttempt,
  exported: ExportDefinition,
  rest: { readonly since?: string | null; readonly from?: string; readonly to?: string },
  warnings: readonly ExportWarning[] = [],
): Promise<void> {
  const body = { wait_for_loads: true, ...requestOf(context.exportOptions, exported), ...rest };
  const origin = originOf(run);
  await requestExport(actingAs(context, origin), run.environmentId, body, null, {
    origin,
    retentionDays: exported.retention_days ?? null,
    warnings,
    inSameTransaction: async (db, jobId) => {
      await holdTask(db, run.claim);
      await setRange(db, run.runId, rest.from ?? null, rest.to ?? null);
      const item = { item: exportItem, version: null, jobId, isNew: true, error: null };
      await insertRunItem(db, run.runId, item);
    },
  });
}

/**
 * Copies the files of the export to a folder. The manifest is copied last, because it shows that
 * the copy is complete. A repeated call is harmless.
 */
async function deliverExport(
  context: ScheduleContext,
  run: RunAttempt,
  jobId: string,
  toDir: string,
  signal: AbortSignal,
): Promise<void> {
  const { status, files } = await requireExport(context, run.environmentId, jobId);
  // The run waits until the export is completed.
  if (status !== 'completed') return;
  if (files.length === 0) throw new SourceFailure('job_expired', 'The files of the export are gone');
  const folder = await makeFolder(context.schedules.exportRoots, toDir, run);
  for (const file of files) {
    signal.throwIfAborted();
    await copyFile(context, file, folder, signal);
  }
  await act(
    actingAs(context, originOf(run)),
    (db) => setDeliveredTo(db, run.claim, folder),
    () => ({ action: 'export.delivered', environmentId: run.environmentId, thing: jobId }),
  );
  context.log.info({ schedule: run.name, job_id: jobId, files: files.length }, 'export delivered');
}

/**
 * Finds the root that contains `toDir`. The first call comes before the export is requested, so
 * that a wrong folder is refused early.
 * @throws SourceFailure if `toDir` is outside `roots`
 */
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
    // A link could lead out of the folder. A broken link has no real path.
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
  const unfinished = join(folder, `.${filename}.unfinished`);
  const finished = join(folder, filename);
  const target = await open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o640);
  const hash = createHash('sha256');
  const hashed = async function* (pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const bytes of pieces) {
      hash.update(bytes);
      yield bytes;
    }
  };
  await pipeline(files.open(ref as FileRef), hashed, target.createWriteStream({ flush: true }), { signal });
  if (hash.digest('hex') !== sha256) throw new Error(`${filename} is not what its export wrote`);
  await rename(unfinished, finished);
}
