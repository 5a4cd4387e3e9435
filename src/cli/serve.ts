import { prepareDatabase } from '../provide-database.ts';
import { shutDown } from '../shutdown.ts';
import { defineCommand } from './define-command.ts';
import { awaitDatabase, retryWhileAway } from './service/await-database.ts';
import { announceKey, ensureFirstKey, openHttpService, openServingSystem } from './service/http-service.ts';
import { checkAddress, warnOfRedis, warnOfStorage } from './service/preflight.ts';
import { listenForStop } from './service/stop-signals.ts';
import { listenOptions, readSettings } from './settings.ts';

export const serve = defineCommand({
  name: 'serve',
  summary: 'the HTTP server alone',
  description:
    'Starts the HTTP server only; `sluice work` does what it accepts. The database is DATABASE_URL, or the embedded\n' +
    'one that runs on DATA_DIR; it is waited for up to a minute, and migrated.',
  options: listenOptions,
  examples: [
    'DATABASE_URL=postgres://… REDIS_URL=redis://… HOST=0.0.0.0 sluice serve',
    'sluice serve --port 8081     # a second server beside `sluice start`',
  ],
  run: async ({ cli, command, terminal }) => {
    const { config, serviceLog } = readSettings(cli, command);
    const log = serviceLog('serve');
    const stop = listenForStop();
    const waiting = {
      signal: stop.signal,
      log,
      onWait: (sentence: string) => log.warn(`${sentence} Waiting for it.`),
    };
    await checkAddress(config, false);
    const databaseUrl = await awaitDatabase(config, waiting);
    await retryWhileAway(waiting, () => prepareDatabase(databaseUrl, config.redisUrl === null, log));
    const system = openServingSystem(config, databaseUrl, log);
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
