import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { chooseAccount } from './account.ts';
import { provideBinaries } from './binaries.ts';
import type { ClusterContext } from './cluster-context.ts';
import { createCluster } from './create-cluster.ts';
import { hasUsableData } from './data-version.ts';
import { type LaunchedServer, launchServer } from './launch-server.ts';
import { ensureRoot, layoutOf } from './layout.ts';
import { inspectMachine } from './machine.ts';
import { ensurePassword, readPassword } from './password.ts';
import { awaitPreviousServer } from './previous-server.ts';
import { resetPassword } from './role-and-database.ts';
import { removeServerFile } from './server-file.ts';
import { boundServerLog } from './server-log.ts';
import { serverSettings } from './settings.ts';
import { stopServer } from './stop-server.ts';

/** A running server. It keeps this process alive until it is stopped, and dies with this process. */
export interface EmbeddedPostgres {
  /** postgres://sluice:<password>@127.0.0.1:<port>/sluice */
  readonly url: string;
  /** As `show server_version` says, for example "18.4". */
  readonly version: string;
  /** Resolves when the server process has ended, for whatever reason. Never rejects. */
  readonly exited: Promise<void>;
  /** Fast shutdown; waits for the end, and forces it after a deadline. May be called again. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** Made on first use; holds the data, the passwords, the log. */
  readonly dataDir: string;
  readonly log: Logger;
  /** Server settings that replace ours. Address and port cannot be replaced. */
  readonly settings?: Record<string, string>;
  /** Preferred; another is taken if somebody else has it. Any free one unless told. */
  readonly port?: number;
}

/**
 * Starts the server for dataDir (creating it on first use).
 * Throws DataDirInUseError if a live server runs on it already, EmbeddedPostgresError if none can run here.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const startedAt = performance.now();
  const layout = layoutOf(resolve(options.dataDir));
  await ensureRoot(layout);
  await awaitPreviousServer(layout, log);
  const account = await chooseAccount(layout);
  const binaries = await provideBinaries(account, layout, log);
  const context = { layout, account, binaries };
  if (!(await hasUsableData(layout, binaries.major))) await createCluster(context);
  else if ((await readPassword(layout.password)) === undefined) await resetPassword(context);
  const settings = { ...serverSettings(await inspectMachine()), ...options.settings };
  const password = await ensurePassword(layout.password);
  const server = await launchServer({ ...context, password, settings, port: options.port });
  const ms = Math.round(performance.now() - startedAt);
  log.info({ postgres_pid: server.process.pid, version: server.version, ms }, 'embedded Postgres is ready');
  return supervise(server, context, log);
}

/** Ties the housekeeping to the server's end, expected or not. */
function supervise(server: LaunchedServer, context: ClusterContext, log: Logger): EmbeddedPostgres {
  const { layout, account, binaries } = context;
  const endLogBound = boundServerLog(layout);
  let stopping: Promise<void> | undefined;
  const tidied = server.process.exited.then(async (ending) => {
    endLogBound();
    if (stopping === undefined) log.error({ ending }, 'embedded Postgres ended unexpectedly');
    await removeServerFile(layout, server.process.pid).catch(() => undefined);
  });
  const stop = async () => {
    await stopServer(server.process, { binaries, account, data: layout.data }, log);
    await tidied;
  };
  return {
    url: server.url,
    version: server.version,
    exited: tidied,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}
