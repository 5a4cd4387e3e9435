import { InputError } from '../../domain/errors.ts';
import { ALL_RECORDS_REFUSED, defaultLoadOptions, type Load, type LoadOptions } from '../../domain/load.ts';
import { acceptLoad } from '../../load/accept-load.ts';
import { receivingStore } from '../../load/received-files.ts';
import type { Cli } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { explainError } from '../explain-error.ts';
import { linkBase } from '../link-base.ts';
import type { Session } from '../session/session.ts';
import { countLiveWorkers, type Hands } from '../session/workers.ts';
import type { Input } from './find-files.ts';
import { followLoad, hasEnded } from './follow-load.ts';
import { createProgress } from './progress.ts';
import { nameOf, readInput } from './read-input.ts';
import { renderResult } from './render-result.ts';
import { type RejectsReport, reportRejects } from './report-rejects.ts';
import type { ImportFlags } from './run-import.ts';

export interface Work {
  readonly environmentId: number;
  readonly hands: Hands | null;
  readonly signal: AbortSignal;
}

/** What became of one file. */
export interface Imported {
  readonly name: string;
  readonly exitCode: number;
  /** Null if nothing was accepted. */
  readonly load: Load | null;
  readonly rejects: RejectsReport | null;
  /** What else there is to say: why nothing was accepted, how to go on. */
  readonly remark: string | null;
  /** For scripts. */
  readonly json: object;
}

/** Receives, accepts, follows to the end. Throws only for what is no fault of the file. */
export async function importFile(
  cli: Cli,
  session: Session,
  input: Input,
  flags: ImportFlags,
  work: Work,
): Promise<Imported> {
  const name = nameOf(input);
  const progress = createProgress(cli.terminal, name, flags.quiet || flags.json);
  const { system } = session;
  const { environmentId, signal } = work;
  const tell = (result: Omit<Imported, 'json'>, error: InputError | null = null): Imported => ({
    ...result,
    json: renderResult(result, error, linkBase(system.config)),
  });
  try {
    const received = await readInput(input, {
      format: flags.format,
      config: system.config,
      store: receivingStore(system),
      signal,
      onBytes: (bytes) => progress.receiving(bytes, input.bytes),
    });
    const { jobId, created } = await acceptLoad(system, {
      environmentId,
      type: 'import',
      filename: name,
      received,
      options: loadOptions(flags),
      idempotencyKey: null,
    });
    const patience = flags.wait ? signal : AbortSignal.abort();
    const load = await followLoad(system, {
      environmentId,
      jobId,
      signal: patience,
      onChange: progress.loading,
    });
    progress.end();
    const rejects = hasEnded(load)
      ? await reportRejects(system, environmentId, load, flags.rejectsDir)
      : null;
    const remark = await remarkOn(load, created, session, work);
    return tell({ name, exitCode: exitCodeOf(load, flags), load, rejects, remark });
  } catch (error) {
    progress.end();
    if (signal.aborted)
      return tell(notAccepted(name, exitCodes.interrupted, 'Stopped; nothing of this file was accepted.'));
    if (!(error instanceof InputError)) throw error;
    const { message, exitCode } = explainError(error);
    return tell(notAccepted(name, exitCode, message), error);
  }
}

function loadOptions({ entity, map, dryRun, maxErrors, ifDuplicate }: ImportFlags): LoadOptions {
  return {
    ...defaultLoadOptions,
    entity: entity ?? 'auto',
    map,
    dryRun,
    maxErrors: maxErrors ?? null,
    ifDuplicate,
  };
}

function notAccepted(name: string, exitCode: number, remark: string) {
  return { name, exitCode, load: null, rejects: null, remark };
}

function exitCodeOf(load: Load, flags: ImportFlags): number {
  if (load.status === 'completed') return exitCodes.ok;
  if (hasEnded(load)) return exitCodes.failed;
  return flags.wait ? exitCodes.interrupted : exitCodes.ok;
}

async function remarkOn(
  load: Load,
  created: boolean,
  session: Session,
  { hands }: Work,
): Promise<string | null> {
  if (!created) return `The same bytes were loaded before, by job ${load.jobId}: skipped.`;
  if (load.failure?.code === ALL_RECORDS_REFUSED) return null;
  if (load.status === 'failed') return `When what made it fail is mended: sluice jobs retry ${load.jobId}`;
  if (hasEnded(load)) return null;
  if (hands?.whose === 'running' || (hands === null && (await countLiveWorkers(session.system)) > 0)) {
    return `The running workers go on with it. To look: sluice jobs show ${load.jobId} --watch`;
  }
  return (
    'It goes on where it is, losing nothing, as soon as workers run: `sluice start` (or `sluice work`, or the next `sluice import`).\n' +
    `To give it up: sluice jobs cancel ${load.jobId}`
  );
}
