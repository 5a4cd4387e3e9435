import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { render } from '../api/render.ts';
import { readStatus } from '../background-jobs/jobs.ts';
import type { Config } from '../config.ts';
import { WORKER_ALIVE_SECONDS } from '../domain/limits.ts';
import { renderNeed } from '../domain/need.ts';
import { formatBytes } from '../domain/wording.ts';
import { type Disk, foldersWritten, isFull, readDisk } from '../files/disk.ts';
import { createWatchPool } from '../postgres/pool.ts';
import { isMissingTable } from '../postgres/sqlstate.ts';
import { readLiveWorkers } from '../postgres/stores/workers.ts';
import { defineCommand, flag } from './define-command.ts';
import { CommandFailed } from './errors.ts';
import { listenForStop } from './service/processes.ts';
import { findDatabase } from './session.ts';
import { readSettings } from './settings.ts';
import { printRecord, type Terminal } from './terminal.ts';

const everyMs = 2_000;

export const status = defineCommand({
  name: 'status',
  summary: 'workers, queue, lanes, rates, latest failures',
  description:
    'Shows the state of all environments: live workers, what needs attention, what runs in each lane and how fast, what waits and for how long,\n' +
    'exports, deletions, latest failures. Starts and changes nothing.',
  options: {
    watch: flag('--watch', 'again every two seconds, until Ctrl-C'),
    worker: flag('--worker', 'only whether a worker of this host lives, as the exit code: for health checks'),
  },
  json: 'print JSON, with --watch one object a line',
  examples: ['sluice status --watch', 'sluice status --json | jq .needs'],
  run: async ({ cli, command, flags, terminal, json }) => {
    const { config } = readSettings(cli, command);
    const stop = listenForStop();
    const pool = createWatchPool(await findWithDisks(config), 'status');
    pool.on('error', () => undefined);
    try {
      if (flags.worker) return await expectWorker(pool);
      await show(terminal, pool, config, json);
      while (flags.watch && !terminal.closed) {
        await delay(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
        if (stop.signal.aborted) return;
        if (!json) terminal.print('');
        await show(terminal, pool, config, json);
      }
    } finally {
      await pool.end();
    }
  },
});

/** A worker listens nowhere; the database knows when it was last seen. */
async function expectWorker(pool: pg.Pool): Promise<void> {
  const host = hostname();
  if ((await readLiveWorkers(pool)).some((worker) => worker.host === host)) return;
  throw new CommandFailed(`No worker of ${host} was seen in the last ${WORKER_ALIVE_SECONDS} seconds.`);
}

async function show(terminal: Terminal, pool: pg.Pool, config: Config, json: boolean): Promise<void> {
  const disks = await readDisks(config);
  const found = await readStatus(pool, config.schedulesFile).catch((error: unknown) => {
    if (!isMissingTable(error)) throw asFullDisk(disks, error);
    throw new CommandFailed(
      'The database lacks tables that this version needs: `sluice migrate`, or a start, makes them.',
    );
  });
  const record = recordOf(found, disks);
  if (json) return terminal.json(record);
  for (const disk of disks.filter(isFull)) terminal.print(`${describeFull(disk)} Make room.`);
  if (found.workers.length === 0) terminal.print('No worker is alive.');
  const needs = found.needs.flatMap(({ environment, needs: some }) =>
    some.map(({ says, subject }) => ({ environment, subject, says })),
  );
  const lanes = found.lanes.map(({ running, ...lane }: { readonly running?: object | null }) => ({
    ...lane,
    ...running,
  }));
  printRecord({ terminal, json }, { ...record, needs, lanes: renderAll(lanes) });
}

async function findWithDisks(config: Config): Promise<string> {
  return findDatabase(config).catch(async (error: unknown) => {
    throw error instanceof CommandFailed ? asFullDisk(await readDisks(config), error) : error;
  });
}

/** Reads the disks that this machine writes to, each once. One that cannot be read is left out; doctor reports it. */
async function readDisks(config: Config): Promise<Disk[]> {
  const looks = await Promise.allSettled(foldersWritten(config).map(readDisk));
  const found = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  return [...new Map(found.reverse().map((disk) => [disk.device, disk])).values()].reverse();
}

/** A database without disk space is down and gives no reason. */
function asFullDisk<E>(disks: readonly Disk[], error: E): E | CommandFailed {
  const full = disks.find(isFull);
  if (full === undefined) return error;
  return new CommandFailed(
    `The database is away. ${describeFull(full)} Make room: the service continues by itself.`,
  );
}

function describeFull({ folder, freeBytes }: Disk): string {
  return `The disk of ${folder} is full: ${formatBytes(freeBytes)} left.`;
}

/** Returns what is shown, with the names of the API: times as text, spans in seconds. */
export function recordOf(status: Awaited<ReturnType<typeof readStatus>>, disks: readonly Disk[]) {
  const { needs, exports, backlog, ...found } = status;
  return renderAll({
    needs: needs.flatMap(({ environment, needs: some }) =>
      some.map((need) => ({ environment, ...renderNeed(need) })),
    ),
    ...backlog,
    ...found,
    runningExports: exports,
    disks: disks.map(({ device: _, ...disk }) => ({ ...disk, isFull: isFull(disk) })),
  }) as Readonly<Record<string, unknown>>;
}

function renderAll(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renderAll);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(render(value)).map(([name, inner]) => [name, renderAll(inner)]));
}
