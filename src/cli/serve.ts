/** `sluice start` and `sluice serve`: the service, or its HTTP server alone. */

import { plural } from '../domain/wording.ts';
import { prepareDatabase } from '../provide-database.ts';
import { shutDown } from '../shutdown.ts';
import { warnOfTraces } from '../telemetry/tracing.ts';
import { defineCommand, listenOptions } from './define-command.ts';
import {
  awaitDatabase,
  checkAddress,
  retryWhileAway,
  warnOfRedis,
  warnOfStorage,
} from './service/preflight.ts';
import { listenForStop } from './service/processes.ts';
import {
  announceConsole,
  announceKey,
  ensureFirstKey,
  openHttpService,
  openServingSystem,
  startService,
} from './service/service.ts';
import { announceNewData } from './session.ts';
import { readSettings } from './settings.ts';

export const start = defineCommand({
  name: 'start',
  summary: 'everything in one: database, HTTP server, worker processes',
  description:
    'Starts the service: the embedded database (unless DATABASE_URL is set), the HTTP server and one worker\n' +
    'process per core. The first start prints an API key. Ctrl-C or SIGTERM stops it in order.',
  options: listenOptions,
  details: 'All settings: sluice config',
  examples: [
    'sluice start                             # port 8080, data in .sluice',
    'sluice start --port 0 --data-dir /tmp/x  # any free port, data elsewhere',
    'WORKERS=4 sluice start --host 0.0.0.0    # for the whole network',
    'DATABASE_URL=postgres://… sluice start   # on a PostgreSQL of your own',
  ],
  run: async ({ cli, command, terminal }) => {
    const { config, processEnv, serviceLog, openTracing } = readSettings(cli, command);
    const log = serviceLog('start');
    warnOfTraces(processEnv, log);
    const stop = listenForStop();
    const startedAt = performance.now();
    await announceNewData(terminal, config);
    const service = await startService({
      config,
      processEnv,
      entry: cli.entry,
      log,
      tracing: await openTracing('start', log),
      signal: stop.signal,
      onKey: (key) => announceKey(terminal, key),
      onWait: (sentence) => log.warn(`${sentence} Waiting for it.`),
    });
    stop.onSecond = service.kill;
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    if (!stop.signal.aborted) {
      const workers = plural(config.workers, 'worker');
      terminal.print(
        `sluice listens on ${service.url} (${workers}, ready in ${seconds} s). Ctrl-C stops it.`,
      );
      await announceConsole(terminal, service);
    }
    const reason = await stop.requested;
    log.info({ reason }, 'stopping');
    const clean = await service.stop();
    log.info(clean ? 'stopped' : 'stopped; what was late is done again at the next start');
  },
});

export const serve = defineCommand({
  name: 'serve',
  summary: 'the HTTP server alone',
  description:
    'Starts the HTTP server only; `sluice work` does what it accepts, except small loads. The database is DATABASE_URL,\n' +
    'or the embedded one that runs on DATA_DIR. Waits for it up to a minute, and migrates it.',
  options: listenOptions,
  examples: [
    'DATABASE_URL=postgres://… REDIS_URL=redis://… HOST=0.0.0.0 sluice serve',
    'sluice serve --port 8081     # a second server beside `sluice start`',
  ],
  run: async ({ cli, command, terminal }) => {
    const { config, processEnv, serviceLog, openTracing } = readSettings(cli, command);
    const log = serviceLog('serve');
    warnOfTraces(processEnv, log);
    const stop = listenForStop();
    const waiting = {
      signal: stop.signal,
      log,
      onWait: (sentence: string) => log.warn(`${sentence} Waiting for it.`),
    };
    await checkAddress(config, false);
    const databaseUrl = await awaitDatabase(config, waiting);
    await retryWhileAway(waiting, () => prepareDatabase(databaseUrl, config.redisUrl === null, log));
    const system = openServingSystem(config, databaseUrl, log, await openTracing('serve', log));
    void warnOfRedis(config, log);
    void warnOfStorage(config, system.files, log);
    const key = await retryWhileAway(waiting, () => ensureFirstKey(system.db));
    if (key !== null) announceKey(terminal, key);
    const http = await openHttpService(system);
    if (!stop.signal.aborted) terminal.print(`sluice listens on ${http.url}. Ctrl-C stops it.`);
    const reason = await stop.requested;
    log.info({ reason }, 'stopping');
    const phases = [http.drain, http.stopListening, http.closeSystem];
    await shutDown(phases, config.drainMs + config.shutdownMs, log);
    log.info('stopped');
  },
});
