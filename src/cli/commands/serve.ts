import type { Command } from 'commander';
import { prepareDatabase } from '../../postgres/prepare.ts';
import { shutDown } from '../../shutdown.ts';
import type { Cli } from '../cli.ts';
import { awaitDatabase } from '../service/await-database.ts';
import { checkAddress } from '../service/check-address.ts';
import { warnOfRedis } from '../service/check-redis.ts';
import { announceKey, ensureFirstKey } from '../service/first-key.ts';
import { openServingSystem, openSurface } from '../service/surface.ts';
import { warnOfStorage } from '../service/warn-of-storage.ts';
import { whileAway } from '../service/while-away.ts';
import { addListenOptions, readSettings } from '../settings.ts';
import { listenForStop } from '../stop-signals.ts';

export function addServeCommand(program: Command, cli: Cli): void {
  addListenOptions(program.command('serve'))
    .summary('the HTTP server alone')
    .description(
      'Starts the HTTP server only; `sluice work` does what it accepts. The database is DATABASE_URL, or the embedded\n' +
        'one that runs on DATA_DIR; it is waited for up to a minute, and migrated.',
    )
    .addHelpText(
      'after',
      `
Examples:
  $ DATABASE_URL=postgres://… REDIS_URL=redis://… HOST=0.0.0.0 sluice serve
  $ sluice serve --port 8081     # a second server beside \`sluice start\``,
    )
    .action((_options, command: Command) => serve(cli, command));
}

async function serve(cli: Cli, command: Command): Promise<void> {
  const { config, serviceLog } = readSettings(cli, command);
  const log = serviceLog('serve');
  const stop = listenForStop();
  await checkAddress(config, false);
  const databaseUrl = await awaitDatabase(config, {
    signal: stop.signal,
    onWait: (sentence) => log.warn(`${sentence} Waiting for it.`),
  });
  const patience = { signal: stop.signal, log };
  await whileAway(patience, () => prepareDatabase(databaseUrl, config.redisUrl === null, log));
  const system = openServingSystem(config, databaseUrl, log);
  void warnOfRedis(config, log);
  void warnOfStorage(config, system.files, log);
  const key = await whileAway(patience, () => ensureFirstKey(system.db));
  if (key !== null) announceKey(cli.terminal, key);
  const surface = await openSurface(system);
  if (!stop.signal.aborted) cli.terminal.print(`sluice listens on ${surface.url}. Ctrl-C stops it.`);
  const reason = await stop.requested;
  log.info({ reason }, 'stopping');
  const phases = [surface.drain, surface.stopListening, surface.closeSystem];
  await shutDown(phases, config.drainMs + config.shutdownMs, log);
  log.info('stopped');
}
