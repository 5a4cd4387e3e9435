import { setTimeout as delay } from 'node:timers/promises';
import { askVersion } from './connection.ts';
import { EmbeddedPostgresError, hasCode } from './errors.ts';
import type { ServerProcess } from './spawn-server.ts';

const pollMs = 15;
/** Until the server answers anything at all. */
const answerDeadlineMs = 60_000;
/** While it says that it is starting up: replaying gigabytes of log on a slow disk takes minutes. */
const recoveryDeadlineMs = 30 * 60_000;

/** SQLSTATE of "the database system is starting up". */
const cannotConnectNow = '57P03';

/** Logs in as soon as the server lets us; returns its version, or undefined when the process ended first. */
export async function awaitReady(server: ServerProcess, url: string): Promise<string | undefined> {
  const startedAt = Date.now();
  let starting = false;
  while (!server.hasExited()) {
    try {
      return await askVersion(url);
    } catch (error) {
      if (hasCode(error, cannotConnectNow)) starting = true;
      else if (isFinal(error)) throw explain(error);
      const deadline = starting ? recoveryDeadlineMs : answerDeadlineMs;
      if (Date.now() - startedAt > deadline) throw explain(error);
    }
    await Promise.race([delay(pollMs), server.exited]);
  }
  return undefined;
}

/** Classes 28 (authorization) and 3D (no such database): waiting does not help. */
function isFinal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(28|3D)/.test(String(error.code));
}

function explain(cause: unknown): EmbeddedPostgresError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new EmbeddedPostgresError(`The embedded Postgres does not let us in: ${reason}`, { cause });
}
