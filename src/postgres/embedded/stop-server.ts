import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Account } from './account.ts';
import type { Binaries } from './binaries.ts';
import { runProgram } from './run-program.ts';
import type { ServerProcess } from './spawn-server.ts';

/** The shutdown checkpoint writes what is dirty in shared_buffers; then patience ends in two steps. */
const fastDeadlineMs = 60_000;
const immediateDeadlineMs = 5_000;

/**
 * Fast shutdown: open transactions are rolled back, everything is written, the next start needs no recovery.
 * Past the deadline the server is ended the hard way; what was committed is recovered by the next start.
 */
export async function stopServer(
  server: ServerProcess,
  context: { readonly binaries: Binaries; readonly account: Account | undefined; readonly data: string },
  log: Logger,
): Promise<void> {
  if (process.platform === 'win32') {
    // No signals there: pg_ctl speaks to the server through its named pipe.
    const { account, binaries, data } = context;
    await runProgram(binaries.pgCtl, ['stop', '-W', '-m', 'fast', '-D', data], { account, cwd: data });
  } else {
    server.kill('SIGINT');
  }
  if (await endsWithin(server, fastDeadlineMs)) return;
  log.warn({ pid: server.pid }, 'embedded Postgres did not stop in time: ending it without a checkpoint');
  server.kill('SIGQUIT');
  if (await endsWithin(server, immediateDeadlineMs)) return;
  server.kill('SIGKILL');
  await server.exited;
}

async function endsWithin(server: ServerProcess, deadlineMs: number): Promise<boolean> {
  const patience = new AbortController();
  const late = delay(deadlineMs, false, { signal: patience.signal }).catch(() => false);
  const ended = await Promise.race([server.exited.then(() => true), late]);
  patience.abort();
  return ended;
}
