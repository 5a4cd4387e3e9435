import type { Command } from 'commander';
import { InputError } from '../../domain/errors.ts';
import type { Export } from '../../domain/export.ts';
import { cancelExport } from '../../export/cancel-export.ts';
import { requestExport } from '../../export/request-export.ts';
import type { Cli } from '../cli.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { requireEnvironment, type Session, withSession } from '../session/session.ts';
import { type Hands, provideWorkers } from '../session/workers.ts';
import { listenForStop } from '../stop-signals.ts';
import { type ExportFlags, toBody } from './export-flags.ts';
import { createExportProgress } from './export-progress.ts';
import { followExport } from './follow-export.ts';
import { printExport } from './print-export.ts';
import { requireEmpty, saveFiles } from './save-files.ts';

/** Asks for the export, makes sure that somebody works, waits, fetches the files, verifies them, tells. */
export async function runExportCommand(cli: Cli, command: Command, flags: ExportFlags): Promise<void> {
  const { out } = flags;
  if (out === undefined) throw new UsageError('Say where the files are to go: --out FOLDER.');
  await requireEmpty(out);
  let hands: Hands | null = null;
  const stop = listenForStop({ onSecond: () => hands?.kill() });
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const jobId = await requestExport(session.system, environmentId, toBody(flags));
    try {
      hands = await provideWorkers(session, cli.entry);
      const done = await follow(cli, session, environmentId, jobId, flags, stop.signal);
      process.exitCode = await conclude(cli, session, done, out, flags, stop.signal);
    } catch (error) {
      // Nobody would come for it any more.
      await giveUp(session, environmentId, jobId);
      throw error;
    } finally {
      await hands?.stop();
    }
  });
}

async function follow(
  cli: Cli,
  session: Session,
  environmentId: number,
  jobId: string,
  flags: ExportFlags,
  signal: AbortSignal,
): Promise<Export> {
  const { system } = session;
  const progress = createExportProgress(cli.terminal, flags.quiet || flags.json);
  const seen = await followExport(system, environmentId, jobId, {
    signal,
    onChange: progress.show,
  }).finally(() => progress.end());
  if (seen.endedAt !== null) return seen;
  await giveUp(session, environmentId, jobId);
  return { ...seen, status: 'cancelled' };
}

async function giveUp({ system }: Session, environmentId: number, jobId: string): Promise<void> {
  await cancelExport(system, environmentId, jobId).catch((error: unknown) => {
    // It has ended meanwhile, or the database is away; then there is no more to be done.
    if (!(error instanceof InputError)) system.log.warn({ err: error }, 'the export could not be cancelled');
  });
}

async function conclude(
  cli: Cli,
  { system }: Session,
  done: Export,
  out: string,
  flags: ExportFlags,
  signal: AbortSignal,
): Promise<number> {
  let saved = false;
  if (done.status === 'completed') {
    try {
      await saveFiles(system.files, done, out, signal);
      saved = true;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
  printExport(cli.terminal, done, saved ? out : null, system.config, flags.json);
  if (signal.aborted && !saved) return exitCodes.interrupted;
  return saved ? exitCodes.ok : exitCodes.failed;
}
