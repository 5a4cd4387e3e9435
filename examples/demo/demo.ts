/**
 * The demo, `sluice demo`. Starts the whole service in a temporary folder, uses it over HTTP as a
 * client would, shows the results, checks its counts, and removes everything. It is an example of a
 * program with an API key. client.ts makes the requests, made-up-data.ts the files. `showAll` runs
 * the steps in order.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { defineCommand, parseCount, parsed } from '../../src/cli/define-command.ts';
import { exitCodes } from '../../src/cli/errors.ts';
import { listenForStop } from '../../src/cli/processes.ts';
import { type Cli, readSettings } from '../../src/cli/settings.ts';
import { consoleLink, type Service, startService } from '../../src/processes/service.ts';
import { createClient } from './client.ts';
import { eventDays } from './made-up-data.ts';
import { showDefinitions, showEvents, showExport } from './show-analytics.ts';
import { showArray, showLoads } from './show-loads.ts';
import { showMemory, showOutcome } from './show-outcome.ts';
import type { DemoFlags, DemoStage } from './stage.ts';

/**
 * Defaults that replace environment variables, so that the demo uses an embedded database and any
 * free port.
 */
const defaults = {
  DATABASE_URL: '',
  REDIS_URL: '',
  STORAGE_URL: '',
  PUBLIC_URL: '',
  API_KEY: '',
  HOST: '127.0.0.1',
  PORT: '0',
} as const;

export const demo = defineCommand({
  name: 'demo',
  summary: 'see it work, on data made up for the purpose',
  description:
    'Starts the whole service in a temporary folder, on any free ports, makes up companies and users with a handful of\n' +
    'bad rows, loads them over HTTP, tracks events, exports a segment, shows what became of it all, and removes everything\n' +
    'again.',
  options: {
    users: parsed('--users <n>', 'how many', parseCount, 200_000),
    companies: parsed('--companies <n>', 'how many', parseCount, 5_000),
    events: parsed('--events <n>', 'how many', parseCount, 50_000),
  },
  examples: ['sluice demo', 'sluice demo --users 1000000'],
  run: ({ cli, command, flags }) => runDemo(cli, command, flags),
});

/** Starts the service, shows the steps and cleans up, even after a failure or a stop. */
async function runDemo(cli: Cli, command: Command, flags: DemoFlags): Promise<void> {
  const { terminal } = cli;
  const startedAt = performance.now();
  let service: Service | null = null;
  const stop = listenForStop();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-demo-'));
  try {
    const { config, processEnv, commandLog } = readSettings(cli, command, { ...defaults, DATA_DIR: folder });
    const log = commandLog('demo');
    let key = '';
    terminal.print(heading(cli, '1  Start'));
    const onKey = (newKey: string): void => {
      key = newKey;
    };
    service = await startService({
      config,
      processEnv: { ...processEnv, LOG_LEVEL: log.level },
      entry: cli.entry,
      log,
      signal: stop.signal,
      onKey,
    });
    stop.onSecond = service.kill;
    terminal.print(
      `   PostgreSQL, HTTP server and ${config.workers} workers are ready in ${seconds(startedAt)}`,
    );
    terminal.print(`   ${service.url}, API key ${key.slice(0, 16)}…, data in ${folder}`);
    const stage: DemoStage = {
      cli,
      service,
      folder,
      key,
      flags,
      signal: stop.signal,
      isWatched: terminal.live && process.stdout.isTTY === true,
      heading: (text) => heading(cli, text),
    };
    const isRight = await showAll(stage);
    await showConsole(stage);
    if (!isRight) process.exitCode = exitCodes.failed;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    terminal.inform('Stopped.');
    process.exitCode = exitCodes.interrupted;
  } finally {
    await service?.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
  terminal.print(`   everything stopped, ${folder} removed; ${seconds(startedAt)} in all`);
  if (!stop.signal.aborted) showNext(cli);
}

function showNext(cli: Cli): void {
  const next: readonly (readonly [string, string])[] = [
    ['npm start', 'the same service, to stay: it keeps its data in .sluice and prints a key'],
    [
      'npx sluice import users.csv',
      'loads a file of yours without a server; --dry-run only says what would come of it',
    ],
    ['npx sluice --help', 'exports, segments, deletions, schedules, and the rest'],
    ['docs/api.md', 'every endpoint with its call and answer'],
  ];
  cli.terminal.print(heading(cli, 'Next'));
  for (const [command, what] of next) cli.terminal.print(`   ${command.padEnd(29)}${what}`);
}

/** On a terminal, waits for Enter. */
async function showConsole({ cli, service, signal, isWatched }: DemoStage): Promise<void> {
  const { terminal } = cli;
  terminal.print(heading(cli, 'See it in the console'));
  if (!isWatched || process.stdin.isTTY !== true) {
    terminal.print('   at a terminal the demo waits here, with a link to the console of this service');
    return;
  }
  terminal.print(`   ${await consoleLink(service.system, service.url)}`);
  terminal.print('   The link signs in once, within 15 minutes. Enter ends the demo and removes everything.');
  process.stdin.resume();
  await once(process.stdin, 'data', { signal }).catch(() => undefined);
  process.stdin.pause();
}

/** Returns true if the counts are right. */
async function showAll(stage: DemoStage): Promise<boolean> {
  const client = createClient(stage.service.url, stage.key, stage.signal);
  const { job, expected } = await showLoads(stage, client);
  const isRight = await showOutcome(stage, client, job, expected);
  stage.cli.terminal.print(
    stage.heading(`5  Send an array and single events of ${eventDays} days, as an application does`),
  );
  await showArray(stage, client);
  await showEvents(stage);
  await showDefinitions(stage, client);
  await showExport(stage, client);
  await showMemory(stage);
  return isRight;
}

function heading({ terminal }: Cli, text: string): string {
  return `\n${terminal.style('bold', text)}`;
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
