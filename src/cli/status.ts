/** `sluice status`, `sluice doctor` and `sluice config`: how a service fares, what it stands on, and how it is set. */

import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { render } from '../api/render.ts';
import { readStatus } from '../background-jobs/jobs.ts';
import { type Config, showSettings } from '../config.ts';
import type { Finding, FindingStatus } from '../doctor/check.ts';
import { WORKER_ALIVE_SECONDS } from '../domain/limits.ts';
import { renderNeed } from '../domain/need.ts';
import { formatBytes, plural } from '../domain/wording.ts';
import { type Disk, foldersWritten, isFull, readDisk } from '../files/disk.ts';
import { createWatchPool } from '../postgres/pool.ts';
import { isMissingTable } from '../postgres/sqlstate.ts';
import { readLiveWorkers } from '../postgres/stores/workers.ts';
import { settings } from '../settings.ts';
import { defineCommand, flag, listenOptions } from './define-command.ts';
import { CommandFailed, exitCodes } from './errors.ts';
import { listenForStop } from './service/processes.ts';
import { findDatabase } from './session.ts';
import { flagName, readFlags, readSettings } from './settings.ts';
import { printable, printRecord, printRecords, type Terminal } from './terminal.ts';

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

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'check PostgreSQL, Redis, storage and settings, and say what to do',
  description:
    'Checks PostgreSQL (version, rights, settings, clock, migrations), Redis, storage, disks, mail server, inbox, schedules\n' +
    'and settings, and says of each what it found and what to do. Starts no database, applies no migration, sends no\n' +
    'message; writes one small file to the storage, and removes it.',
  json: 'print the findings as JSON',
  details: `Exit code: 0 nothing failed, though there may be warnings; 1 something failed;
2 a setting is wrong.`,
  examples: [
    'sluice doctor',
    'DATABASE_URL=postgres://… REDIS_URL=redis://… sluice doctor',
    `sluice doctor --json | jq '.[] | select(.status != "ok")'`,
  ],
  run: async ({ cli, command, terminal, json }) => {
    // Loaded when it is needed: `status --worker` is run every few seconds.
    const { examine } = await import('../doctor/examine.ts');
    const findings = await examine(readSettings(cli, command).config, cli.processEnv);
    if (json) terminal.json(findings);
    else printFindings(terminal, findings);
    const isBad = findings.some(({ status }) => status === 'failed');
    process.exitCode = isBad ? exitCodes.failed : exitCodes.ok;
  },
});

const longest = 400;
const looks = { ok: 'green', warning: 'yellow', failed: 'red' } as const satisfies Record<
  FindingStatus,
  string
>;

export function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  for (const { check, status, found, advice } of findings) {
    const head = terminal.style(looks[status], status.padEnd(8));
    terminal.print(`${head} ${printable(check, longest)}: ${printable(found, longest)}`);
    if (advice !== null) terminal.print(`${' '.repeat(9)}→ ${printable(advice, longest)}`);
  }
  const count = (status: FindingStatus): number => findings.filter((each) => each.status === status).length;
  terminal.print('');
  terminal.print(`${count('ok')} ok, ${plural(count('warning'), 'warning')}, ${count('failed')} failed`);
}

export const config = defineCommand({
  name: 'config',
  summary: 'the settings in force, and where each comes from',
  description:
    'Shows every setting with the value in force and where it comes from: a flag, the\n' +
    'environment, the file .env of this folder, or the default; the first of them that\n' +
    'has it wins. Secrets are not shown. What each means: docs/configuration.md, or\n' +
    '--example.',
  options: {
    ...listenOptions,
    example: flag('--example', 'print all defaults with their meaning, as a .env file'),
  },
  json: true,
  details: 'Exit code: 0; 2 if a setting is wrong.',
  examples: [
    'sluice config',
    `sluice config --json | jq '.[] | select(.source != "default")'`,
    'sluice config --example > .env',
  ],
  run: ({ cli, command, flags, terminal, json }) => {
    if (flags.example) return void terminal.write(renderExample());
    const isInDotEnv = (name: string): boolean =>
      cli.fromDotEnv.has(name) || cli.fromDotEnv.has(`${name}_FILE`);
    const inForce = showSettings(cli.processEnv, readFlags(command)).map(({ name, source, ...rest }) => {
      if (source === 'flag') return { name, ...rest, source: `--${flagName(name)}` };
      return { name, ...rest, source: source !== 'default' && isInDotEnv(name) ? '.env' : source };
    });
    if (json) terminal.json(inForce);
    else {
      printRecords(terminal, inForce, ['name', 'source', 'value']);
      const file = resolve('.env');
      terminal.inform(cli.fromDotEnv.size > 0 ? `${file} is read.` : `No setting comes from ${file}.`);
    }
    // The complaint, and the exit code of it.
    readSettings(cli, command);
  },
});

const heading = `# Every setting of sluice, with its default. A copy called .env is read from the folder in which sluice is run; the
# environment wins over it, and flags over both. \`sluice config\` shows what is in force.
# Written by \`sluice config --example\`; a test holds it to src/config.ts.
`;

function renderExample(): string {
  const entries = Object.values(settings).map(
    ({ name, fallback, meaning }) => `# ${meaning}\n${name}=${fallback}\n`,
  );
  return `${heading}\n${entries.join('\n')}`;
}
