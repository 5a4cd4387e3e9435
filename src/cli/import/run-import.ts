import type { Command } from 'commander';
import type { LoadEntity } from '../../domain/entity.ts';
import type { LoadOptions, MaxErrors } from '../../domain/load.ts';
import type { SourceFormat } from '../../formats/detect-format.ts';
import type { Cli } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { requireEnvironment, type Session, withSession } from '../session/session.ts';
import { type Hands, provideWorkers } from '../session/workers.ts';
import { listenForStop } from '../stop-signals.ts';
import { findFiles, type Input } from './find-files.ts';
import { type Imported, importFile } from './import-file.ts';
import { printResult } from './print-result.ts';

/** As commander gives them. */
export interface ImportFlags {
  readonly entity?: LoadEntity;
  readonly map: Readonly<Record<string, string>>;
  readonly dryRun: boolean;
  readonly maxErrors?: MaxErrors;
  readonly ifDuplicate: LoadOptions['ifDuplicate'];
  readonly format?: SourceFormat;
  readonly env: string;
  readonly rejectsDir: string;
  readonly wait: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
}

/** Finds the files, opens the system, makes sure that somebody works, loads one after another, tells. */
export async function runImport(
  cli: Cli,
  command: Command,
  names: readonly string[],
  flags: ImportFlags,
): Promise<void> {
  const inputs = await findFiles(names);
  let hands: Hands | null = null;
  const stop = listenForStop({ onSecond: () => hands?.kill() });
  stop.signal.addEventListener('abort', () => {
    if (!flags.quiet)
      cli.terminal.note('Stopping; the chunks under way are finished first. Ctrl-C again exits at once.');
  });
  const load = async (session: Session): Promise<Imported[]> => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    hands = flags.wait ? await provideWorkers(session, cli.entry) : null;
    try {
      return await importAll(cli, session, inputs, flags, { environmentId, hands, signal: stop.signal });
    } finally {
      await hands?.stop();
    }
  };
  const results = await withSession(cli, command, load, { mayCreate: true });
  if (flags.json) cli.terminal.json({ loads: results.map(({ json }) => json) });
  process.exitCode = Math.max(exitCodes.ok, ...results.map(({ exitCode }) => exitCode));
}

interface Work {
  readonly environmentId: number;
  readonly hands: Hands | null;
  readonly signal: AbortSignal;
}

/** In order, up to the first that does not succeed: what comes after it may rely on it. */
async function importAll(
  cli: Cli,
  session: Session,
  inputs: readonly Input[],
  flags: ImportFlags,
  work: Work,
): Promise<Imported[]> {
  const results: Imported[] = [];
  for (const [index, input] of inputs.entries()) {
    const result = await importFile(cli, session, input, flags, work);
    results.push(result);
    if (!flags.json) printResult(cli.terminal, result);
    if (result.exitCode === exitCodes.ok) continue;
    const left = inputs.slice(index + 1).map(({ path }) => path ?? 'standard input');
    if (left.length > 0) cli.terminal.note(`Not loaded, because of this: ${left.join(', ')}`);
    break;
  }
  return results;
}
