import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type pg from 'pg';
import { type Config, readConfig, showSettings } from '../base/config.ts';
import { WORKER_ALIVE_SECONDS } from '../base/limits.ts';
import { pollUntil } from '../base/retry.ts';
import { settings } from '../base/settings.ts';
import { plural } from '../base/wording.ts';
import { defineCommand, flag, listenOptions } from '../cli/define-command.ts';
import { CommandFailed, exitCodes } from '../cli/errors.ts';
import { listenForStop } from '../cli/processes.ts';
import { findDatabase, requireData } from '../cli/session.ts';
import { flagName, listMisspelt, readFlags, readSettings } from '../cli/settings.ts';
import { printable, printRecord, printRecords, type Terminal } from '../cli/terminal.ts';
import { renderNeed } from '../domain/need.ts';
import { type Disk, foldersWritten, isFull, readDisk } from '../files/disk.ts';
import { render } from '../http/render.ts';
import { createWatchPool } from '../postgres/pool.ts';
import { findDatabaseUrl } from '../queue/provide-database.ts';
import { readLiveWorkers } from '../tasks/worker-store.ts';
import { type Finding, warning } from '../telemetry/health/findings.ts';
import { readStatus } from './jobs.ts';

const everyMs = 2_000;

/** If one of these checks fails, no state can be read. */
const awayChecks: ReadonlySet<string> = new Set(['postgres', 'postgres sessions', 'migrations']);

export const status = defineCommand({
  name: 'status',
  summary: 'what is wrong, workers, queue, lanes, rates, latest failures',
  description:
    'Checks what sluice needs (versions, rights, clock, disk, queue, sessions of a pooler, misspelt settings, storage) and\n' +
    'says what to do about each problem. Then shows the state of all environments: live workers, what needs attention,\n' +
    'what runs in each lane, what waits, exports, deletions, latest failures. Starts and changes nothing, but writes one\n' +
    'small file to the storage and removes it.',
  options: {
    watch: flag('--watch', 'again every two seconds, until Ctrl-C; the checks run once'),
    worker: flag('--worker', 'only whether a worker of this host lives, as the exit code: for health checks'),
  },
  json: 'print JSON, with --watch one object a line',
  details: 'Exit code: 0; 1 if a check failed; 2 if a setting is wrong.',
  examples: [
    'sluice status --watch',
    `sluice status --json | jq '.findings[] | select(.status != "ok")'`,
    'sluice status --json | jq .needs',
  ],
  run: async ({ cli, command, flags, terminal, json }) => {
    const config = readConfig(cli.processEnv, readFlags(command));
    await requireData(config);
    if (flags.worker) return withPool(await findDatabase(config), expectWorker);
    // `status --worker` runs every few seconds and does not need the checks.
    const { examine } = await import('../telemetry/health/checks.ts');
    const misspelt = listMisspelt(cli).map(({ name, meant }) =>
      warning('settings', `${name} is not a setting of sluice`, `Did you mean ${meant}?`),
    );
    const findings = [...(await examine(config)), ...misspelt];
    const isBad = findings.some(({ status }) => status === 'failed');
    process.exitCode = isBad ? exitCodes.failed : exitCodes.ok;
    if (!json) printFindings(terminal, findings);
    const url = await findDatabaseUrl(config);
    const isAway = findings.some(({ check, status }) => awayChecks.has(check) && status !== 'ok');
    if (isAway || url === undefined) {
      if (json) terminal.json({ findings });
      return;
    }
    const stop = listenForStop();
    const figures = await cli.figures();
    await withPool(url, async (pool) => {
      let isFirst = true;
      await pollUntil({ everyMs, signal: stop.signal }, async () => {
        if (!isFirst && !json) terminal.print('');
        isFirst = false;
        if (json)
          terminal.json({
            ...recordOf(await readStatus(pool, figures), await readDisks(config)),
            findings,
          });
        else await showStatus(terminal, await readStatus(pool, figures), config);
        return !flags.watch || terminal.closed;
      });
    });
  },
});

async function withPool(url: string, work: (pool: pg.Pool) => Promise<void>): Promise<void> {
  const pool = createWatchPool(url, 'status');
  pool.on('error', () => undefined);
  try {
    await work(pool);
  } finally {
    await pool.end();
  }
}

/** Workers do not listen on a port, so their heartbeats are read from the database. */
async function expectWorker(pool: pg.Pool): Promise<void> {
  const host = hostname();
  if ((await readLiveWorkers(pool)).some((worker) => worker.host === host)) return;
  throw new CommandFailed(`No worker of ${host} was seen in the last ${WORKER_ALIVE_SECONDS} seconds.`);
}

type Status = Awaited<ReturnType<typeof readStatus>>;

async function showStatus(terminal: Terminal, status: Status, config: Config): Promise<void> {
  if (status.workers.length === 0) terminal.print('No worker is alive.');
  const needs = status.needs.flatMap(({ environment, needs: list }) =>
    list.map(({ says, subject }) => ({ environment, subject, says })),
  );
  const lanes = status.lanes.map(({ running, ...lane }: { readonly running?: object | null }) => ({
    ...lane,
    ...running,
  }));
  const record = recordOf(status, await readDisks(config));
  printRecord({ terminal, json: false }, { ...record, needs, lanes: renderAll(lanes) });
}

/**
 * Returns each disk once. A disk that cannot be read is left out, because the checks already report
 * it.
 */
async function readDisks(config: Config): Promise<Disk[]> {
  const looks = await Promise.allSettled(foldersWritten(config).map(readDisk));
  const disks = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  return [...new Map(disks.reverse().map((disk) => [disk.device, disk])).values()].reverse();
}

/** Returns the status with API names. Times are strings, and durations are in seconds. */
export function recordOf(status: Status, disks: readonly Disk[]) {
  const { needs, exports, backlog, ...others } = status;
  return renderAll({
    needs: needs.flatMap(({ environment, needs: list }) =>
      list.map((need) => ({ environment, ...renderNeed(need) })),
    ),
    ...backlog,
    ...others,
    runningExports: exports,
    disks: disks.map(({ device: _, ...disk }) => ({ ...disk, isFull: isFull(disk) })),
  }) as Readonly<Record<string, unknown>>;
}

function renderAll(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renderAll);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(render(value)).map(([name, inner]) => [name, renderAll(inner)]));
}

const longest = 400;
const colors = { warning: 'yellow', failed: 'red' } as const;

function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  for (const { check, status, found, advice } of findings) {
    if (status === 'ok') continue;
    const head = terminal.style(colors[status], status.padEnd(7));
    terminal.print(`${head} ${printable(check, longest)}: ${printable(`${found}. ${advice}`, longest)}`);
  }
  const count = (status: Finding['status']): number =>
    findings.filter((each) => each.status === status).length;
  terminal.print(
    `${plural(count('ok'), 'check')} ok, ${plural(count('warning'), 'warning')}, ${count('failed')} failed`,
  );
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
    // Throws if a setting is invalid, so that the command reports it and exits with code 2.
    readSettings(cli, command);
  },
});

const heading = `# Every setting of sluice, with its default. A copy called .env is read from the folder in which sluice is run; the
# environment wins over it, and flags over both. \`sluice config\` shows what is in force.
# Written by \`sluice config --example\`; a test holds it to src/base/config.ts.
`;

function renderExample(): string {
  const entries = Object.values(settings).map(
    ({ name, fallback, meaning }) => `# ${meaning}\n${name}=${fallback}\n`,
  );
  return `${heading}\n${entries.join('\n')}`;
}
