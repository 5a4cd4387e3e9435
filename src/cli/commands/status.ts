import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import type pg from 'pg';
import { readStatus } from '../../background-jobs/read-status.ts';
import type { Config } from '../../config.ts';
import { type Disk, foldersWritten, isFull, readDisk } from '../../files/disk.ts';
import { isMissingTable } from '../../postgres/sqlstate.ts';
import { createWatchPool } from '../../postgres/watch-pool.ts';
import type { Cli } from '../cli.ts';
import { CommandFailed } from '../exit-codes.ts';
import { findDatabase } from '../session/find-database.ts';
import { readSettings } from '../settings.ts';
import { describeDisk, describeStatus } from '../status/describe-status.ts';
import { renderStatus } from '../status/render-status.ts';
import { listenForStop } from '../stop-signals.ts';
import type { Terminal } from '../terminal.ts';

const everyMs = 2_000;

interface Flags {
  readonly watch: boolean;
  readonly json: boolean;
}

export function addStatusCommand(program: Command, cli: Cli): void {
  program
    .command('status')
    .summary('workers, queue, lanes, rates, latest failures')
    .description(
      'Shows what the service is at, in all environments: the workers that live, what runs in each lane and how fast, what\n' +
        'waits and for how long, exports, deletions, the latest failures. Reads the ledger beside whoever runs on it; starts\n' +
        'and changes nothing.',
    )
    .option('--watch', 'again every two seconds, until Ctrl-C', false)
    .option('--json', 'print JSON, with --watch one object a line', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice status --watch\n  $ sluice status --json | jq .oldest_waiting_seconds',
    )
    .action((flags: Flags, command: Command) => status(cli, command, flags));
}

async function status(cli: Cli, command: Command, { watch: again, json }: Flags): Promise<void> {
  const { config } = readSettings(cli, command);
  const stop = listenForStop();
  const watch = createWatchPool(await findWithDisks(config), 'status');
  watch.on('error', () => undefined);
  try {
    await show(cli.terminal, watch, config, json);
    while (again && !cli.terminal.closed) {
      await delay(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
      if (stop.signal.aborted) return;
      if (!json) cli.terminal.print('');
      await show(cli.terminal, watch, config, json);
    }
  } finally {
    await watch.end();
  }
}

async function show(terminal: Terminal, watch: pg.Pool, config: Config, json: boolean): Promise<void> {
  const disks = await readDisks(config);
  const found = await readStatus(watch).catch((error: unknown) => {
    if (!isMissingTable(error)) throw asFullDisk(disks, error);
    throw new CommandFailed(
      'The database lacks tables that this version needs: `sluice migrate`, or a start, makes them.',
    );
  });
  if (json) return terminal.json(renderStatus(found, disks));
  for (const line of describeStatus(found, disks)) terminal.print(line);
}

async function findWithDisks(config: Config): Promise<string> {
  return findDatabase(config).catch(async (error: unknown) => {
    throw error instanceof CommandFailed ? asFullDisk(await readDisks(config), error) : error;
  });
}

/** Where this machine writes, each disk once; one that cannot be looked at is left out, since doctor tells why. */
async function readDisks(config: Config): Promise<Disk[]> {
  const looks = await Promise.allSettled(foldersWritten(config).map(readDisk));
  const found = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  return [...new Map(found.reverse().map((disk) => [disk.device, disk])).values()].reverse();
}

/** A database without room is away and does not say why. */
function asFullDisk<E>(disks: readonly Disk[], error: E): E | CommandFailed {
  const full = disks.find(isFull);
  if (full === undefined) return error;
  return new CommandFailed(
    `The database is away, and the disk is ${describeDisk(full)}. Make room: the service goes on by itself.`,
  );
}
