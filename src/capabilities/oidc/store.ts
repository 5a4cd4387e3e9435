import { sql } from 'kysely';
import type { Scope } from '../../domain/caller.ts';
import { itemsTable } from '../../lookups/store.ts';
import { inMs } from '../../postgres/columns.ts';
import { changedBy, type Database, firstRow, rowsOf } from '../../postgres/database.ts';

export interface Grant {
  readonly key: string;
  readonly claim: string;
  readonly value: string;
  readonly scopes: readonly Scope[];
}

export const accessGrants = itemsTable<Grant>({
  table: 'access_grants',
  columns: ['key', 'claim', 'value', 'scopes'],
  isDated: false,
});

/** After this time, a session asks the provider for the claims again. */
const CHECK_MS = 60_000;
/** If the provider has not answered for this long, the session has no access. */
const MAX_UNANSWERED_MS = 5 * 60_000;
/**
 * If one request of a session asks the provider, the session's other requests do not ask for this
 * long.
 */
const CHECK_RESERVATION_MS = 10_000;

export interface EnvironmentGrant extends Grant {
  readonly environment: string;
}

/** `null`: all environments. */
export function listGrants(db: Database, environmentId: number | null): Promise<EnvironmentGrant[]> {
  return rowsOf<EnvironmentGrant>(db)`
    select e.name as environment, g.key, g.claim, g.value, g.scopes
    from access_grants g
    join environments e using (environment_id)
    where ${environmentId}::integer is null or environment_id = ${environmentId}
    order by e.name, g.key`;
}

export interface OidcSession {
  readonly client: string;
  readonly fixedClaims: Readonly<Record<string, unknown>>;
  readonly liveClaims: Readonly<Record<string, unknown>>;
  readonly tokens: Buffer;
  readonly isDue: boolean;
  readonly isStale: boolean;
}

export function findSession(db: Database, sessionId: string): Promise<OidcSession | null> {
  return firstRow<OidcSession>(db)`
    select
      client, fixed_claims as "fixedClaims", live_claims as "liveClaims", tokens,
      checked_at < now() - ${CHECK_MS} * interval '1 millisecond' as "isDue",
      checked_at < now() - ${MAX_UNANSWERED_MS} * interval '1 millisecond' as "isStale"
    from oidc_sessions
    where session_id = ${sessionId}`;
}

export interface NewOidcSession
  extends Pick<OidcSession, 'client' | 'fixedClaims' | 'liveClaims' | 'tokens'> {
  readonly sessionId: string;
}

export async function insertSession(db: Database, session: NewOidcSession): Promise<void> {
  await sql`
    insert into oidc_sessions (session_id, client, fixed_claims, live_claims, tokens)
    values (
      ${session.sessionId}, ${session.client}, ${JSON.stringify(session.fixedClaims)},
      ${JSON.stringify(session.liveClaims)}, ${session.tokens}
    )`.execute(db);
}

/** Returns true if the caller may now ask the provider. */
export async function reserveCheck(db: Database, sessionId: string): Promise<boolean> {
  const changed = await changedBy(db)`
    update oidc_sessions
    set check_until = ${inMs(CHECK_RESERVATION_MS)}
    where session_id = ${sessionId} and check_until <= now()`;
  return changed > 0;
}

export async function saveClaims(
  db: Database,
  sessionId: string,
  { fixedClaims, liveClaims }: Pick<OidcSession, 'fixedClaims' | 'liveClaims'>,
): Promise<void> {
  await sql`
    update oidc_sessions
    set
      fixed_claims = ${JSON.stringify(fixedClaims)}, live_claims = ${JSON.stringify(liveClaims)},
      checked_at = now(), check_until = now()
    where session_id = ${sessionId}`.execute(db);
}

/** Each answer of the provider can be used once. Returns false the second time. */
export async function spendState(db: Database, digest: Buffer, lifeMs: number): Promise<boolean> {
  const changed = await changedBy(db)`
    insert into oidc_used_states (digest, expires_at)
    values (${digest}, ${inMs(lifeMs)})
    on conflict do nothing`;
  return changed > 0;
}

/**
 * Deletes expired states, and the claims and tokens of ended sessions. Returns the number of ended
 * sessions.
 */
export async function deleteEnded(db: Database): Promise<number> {
  await sql`delete from oidc_used_states where expires_at < now()`.execute(db);
  return changedBy(db)`
    delete from oidc_sessions o
    using console_sessions s
    where s.session_id = o.session_id and (s.ended_at is not null or s.expires_at < now())`;
}
