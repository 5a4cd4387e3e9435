import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { announceKey } from '../service/first-key.ts';
import { type Service, startService } from '../service/start-service.ts';
import { announceNewData } from '../session/provide-for-command.ts';
import { addListenOptions, readSettings } from '../settings.ts';
import { listenForStop } from '../stop-signals.ts';

export function addStartCommand(program: Command, cli: Cli): void {
  addListenOptions(program.command('start'))
    .summary('everything in one: database, HTTP server, worker processes')
    .description(
      'Starts the service: the embedded database (unless DATABASE_URL is set), the HTTP server and one worker\n' +
        'process per core. The first start prints an API key. Ctrl-C or SIGTERM stops it in order.',
    )
    .addHelpText(
      'after',
      `
Examples:
  $ sluice start                             # port 8080, data in .sluice
  $ sluice start --port 0 --data-dir /tmp/x  # any free port, data elsewhere
  $ WORKERS=4 sluice start --host 0.0.0.0    # for the whole network
  $ DATABASE_URL=postgres://… sluice start   # on a PostgreSQL of your own

All settings: sluice config`,
    )
    .action((_options, command: Command) => start(cli, command));
}

async function start(cli: Cli, command: Command): Promise<void> {
  const { config, environment, serviceLog } = readSettings(cli, command);
  const { terminal, entry } = cli;
  const log = serviceLog('start');
  let service: Service | null = null;
  const stop = listenForStop({ onSecond: () => service?.kill() });
  const startedAt = performance.now();
  await announceNewData(terminal, config);
  service = await startService({
    config,
    environment,
    entry,
    log,
    signal: stop.signal,
    onKey: (key) => announceKey(terminal, key),
    onWait: (sentence) => log.warn(`${sentence} Waiting for it.`),
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (!stop.signal.aborted) {
    const workers = config.workers === 1 ? '1 worker' : `${config.workers} workers`;
    terminal.print(`sluice listens on ${service.url} (${workers}, ready in ${seconds} s). Ctrl-C stops it.`);
  }
  const reason = await stop.requested;
  log.info({ reason }, 'stopping');
  const clean = await service.stop();
  log.info(clean ? 'stopped' : 'stopped; what was late is done again at the next start');
}
