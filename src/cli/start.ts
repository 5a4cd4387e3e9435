import { defineCommand } from './define-command.ts';
import { announceKey } from './service/http-service.ts';
import { startService } from './service/start-service.ts';
import { listenForStop } from './service/stop-signals.ts';
import { announceNewData } from './session.ts';
import { listenOptions, readSettings } from './settings.ts';

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
    const { config, processEnv, serviceLog } = readSettings(cli, command);
    const log = serviceLog('start');
    const stop = listenForStop();
    const startedAt = performance.now();
    await announceNewData(terminal, config);
    const service = await startService({
      config,
      processEnv,
      entry: cli.entry,
      log,
      signal: stop.signal,
      onKey: (key) => announceKey(terminal, key),
      onWait: (sentence) => log.warn(`${sentence} Waiting for it.`),
    });
    stop.onSecond = service.kill;
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    if (!stop.signal.aborted) {
      const workers = config.workers === 1 ? '1 worker' : `${config.workers} workers`;
      terminal.print(
        `sluice listens on ${service.url} (${workers}, ready in ${seconds} s). Ctrl-C stops it.`,
      );
    }
    const reason = await stop.requested;
    log.info({ reason }, 'stopping');
    const clean = await service.stop();
    log.info(clean ? 'stopped' : 'stopped; what was late is done again at the next start');
  },
});
