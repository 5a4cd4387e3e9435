import { createHash } from 'node:crypto';
import type { Mapped } from '../../domain/column-map.ts';
import { InputError } from '../../domain/errors.ts';
import { MAX_RUN_ITEMS } from '../../domain/limits.ts';
import type { LoadOptions } from '../../domain/load.ts';
import { withKeys } from '../../domain/source-options.ts';
import { acceptLoad, convertingStore, discardReceived } from '../../load/accept-load.ts';
import { type ReceivedFile, receive } from '../../load/receive/receive.ts';
import { useMapping, withMapping } from '../../load/saved-mappings.ts';
import { insertRunItem, readRunItems } from '../../postgres/stores/schedule-runs.ts';
import { readMemory } from '../../postgres/stores/schedules.ts';
import {
  holdRun,
  keepRefusal,
  type RunAttempt,
  type ScheduleContext,
  type ScheduleSettings,
} from './context.ts';
import { openHttp } from './http.ts';
import { openLocalFiles } from './local-files.ts';
import { openPostgres } from './postgres.ts';
import { openS3 } from './s3.ts';
import type { ScheduledLoad, SourceDefinition } from './schedule.ts';
import { type IsDone, type OpenItem, type Source, SourceFailure, type SourceItem } from './source.ts';

/**
 * Takes from the source what has not been loaded yet, and makes a load of each item. What an earlier attempt at the run
 * took is left out. @throws SourceFailure
 */
export async function runLoad(
  context: ScheduleContext,
  run: RunAttempt,
  load: ScheduledLoad,
  signal: AbortSignal,
): Promise<void> {
  const source = await openSource(load.source, context.schedules);
  try {
    const memory = await readMemory(context.db, run);
    const taken = await readRunItems(context.db, run.runId);
    const done = new Set(taken.map(({ item }) => item));
    const isDone: IsDone = (key, version) =>
      done.has(shortKey(key)) || (version !== null && version === memory.get(shortKey(key)));
    let left = MAX_RUN_ITEMS - done.size;
    for (const item of await source.list(isDone, signal)) {
      if (isDone(item.key, item.version)) continue;
      const key = shortKey(item.key);
      const known = memory.get(key) ?? null;
      if (left-- <= 0) {
        context.log.warn({ schedule: run.name, items: MAX_RUN_ITEMS }, 'the next run takes the rest');
        break;
      }
      await takeItem(context, run, load, item, key, known, signal);
    }
  } finally {
    await source.close();
  }
}

/** An index of Postgres takes no more than some 2 700 bytes. */
function shortKey(key: string): string {
  if (Buffer.byteLength(key) <= 1_500) return key;
  return `${key.slice(0, 300)}…${createHash('sha256').update(key).digest('hex')}`;
}

async function takeItem(
  context: ScheduleContext,
  run: RunAttempt,
  load: ScheduledLoad,
  item: SourceItem,
  key: string,
  known: string | null,
  signal: AbortSignal,
): Promise<void> {
  const opened = await item.open(known, signal);
  if (opened === 'unchanged') return;
  try {
    const said = { ...load.options, format: load.format };
    const options = await withMapping(context.db, run.environmentId, load.mapping, said);
    const received = await receiveItem(context, run.environmentId, options, item, opened, signal);
    await acceptLoad(context, {
      environmentId: run.environmentId,
      type: 'import',
      filename: item.filename,
      received,
      options,
      idempotencyKey: null,
      origin: { kind: 'schedule', name: run.name },
      inSameTransaction: async (db, { jobId, created }) => {
        await useMapping(db, run.environmentId, load.mapping);
        await holdRun(db, run);
        await insertRunItem(db, run.runId, {
          item: key,
          version: opened.version,
          jobId,
          isNew: created,
          error: null,
        });
      },
    });
  } catch (error) {
    if (error instanceof SourceFailure && !error.passing && !signal.aborted) {
      await keepRefusal(context, run, key, error);
      return;
    }
    if (!(error instanceof InputError)) throw error;
    // A query that finds nothing has nothing to load, and that is no mistake.
    if (load.source.kind === 'postgres' && error.problems[0].code === 'empty_file') return;
    // The message names the option of the HTTP interface; here it is a key of the file.
    const message = withKeys(error.message);
    await keepRefusal(context, run, key, { code: error.problems[0].code, message });
  } finally {
    await opened.close();
  }
}

async function receiveItem(
  context: ScheduleContext,
  environmentId: number,
  options: LoadOptions & Mapped,
  item: SourceItem,
  opened: OpenItem,
  signal: AbortSignal,
): Promise<ReceivedFile> {
  const { limits, chunkBytes } = context.schedules;
  const { bytes, hints } = opened;
  const { source, map, format } = options;
  const said = { ...hints, format: format ?? hints.format, filename: item.filename, source, map };
  const store = convertingStore(context, environmentId);
  const received = await receive(bytes, store, { ...said, chunkBytes }, limits, signal);
  try {
    await opened.check();
    return received;
  } catch (error) {
    await discardReceived(context, received.ref);
    throw error;
  }
}

/** @throws SourceFailure */
async function openSource(definition: SourceDefinition, settings: ScheduleSettings): Promise<Source> {
  switch (definition.kind) {
    case 'files':
      return openLocalFiles(definition, settings.localRoots);
    case 'http':
      return openHttp(definition, settings);
    case 'postgres':
      return openPostgres(definition, settings.variables);
    case 's3':
      return openS3(definition, settings.variables);
  }
}
