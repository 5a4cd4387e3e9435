import type { Command } from 'commander';
import { checkIds } from '../../deletion/read-request.ts';
import { requestDeletion } from '../../deletion/request-deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import type { Cli } from '../cli.ts';
import { CommandFailed, exitCodes, UsageError } from '../exit-codes.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { type Hands, provideWorkers } from '../session/workers.ts';
import { listenForStop } from '../stop-signals.ts';
import { confirmDeletion } from './confirm-deletion.ts';
import { followDeletion } from './follow-deletion.ts';
import { printDeletion } from './print-deletion.ts';
import { readIdFile } from './read-id-file.ts';

export interface DeleteFlags {
  readonly file?: string;
  readonly purgeExports: boolean;
  readonly yes: boolean;
  readonly env: string;
  readonly json: boolean;
}

/** Asks, accepts the deletion, makes sure that somebody works, waits, tells. */
export async function runDeleteCommand(
  cli: Cli,
  command: Command,
  entity: Entity,
  given: readonly string[],
  flags: DeleteFlags,
): Promise<void> {
  const listed = flags.file === undefined ? [] : await readIdFile(flags.file);
  if (given.length + listed.length === 0) throw new UsageError('Say which: ids, or --file PATH.');
  const ids = checkIds(entity, [...given, ...listed]);
  if (!flags.yes && !(await confirmDeletion(cli.terminal, entity, ids, flags))) {
    throw new CommandFailed('Nothing was deleted.');
  }
  let hands: Hands | null = null;
  const stop = listenForStop({ onSecond: () => hands?.kill() });
  await withSession(cli, command, async (session) => {
    const { system } = session;
    const { environmentId } = await requireEnvironment(session, flags.env);
    const { purgeExports } = flags;
    const jobId = await requestDeletion(system, environmentId, entity, { ids, purgeExports });
    try {
      hands = await provideWorkers(session, cli.entry);
      const seen = await followDeletion(system, environmentId, jobId, stop.signal);
      await printDeletion(cli.terminal, session, seen, flags.json);
      if (seen.status === 'completed') process.exitCode = exitCodes.ok;
      else process.exitCode = seen.status === 'failed' ? exitCodes.failed : exitCodes.interrupted;
    } finally {
      await hands?.stop();
    }
  });
}
