import type { Static } from 'typebox';
import type { Caller } from '../../access/verify-key.ts';
import type { callerRecord, sessionItem } from '../../api/session.ts';

export type CallerRecord = Static<typeof callerRecord.schema>;

export function renderCaller(
  { environment, scopes: allowed, keyId, session }: Caller,
  environments: readonly string[],
  version: string,
): CallerRecord {
  return {
    environment: environment.name,
    environments: [...environments],
    scopes: [...allowed],
    key_id: keyId,
    is_admin: session?.isAdmin === true,
    session_id: session?.sessionId ?? null,
    expires_at: session?.expiresAt.toISOString() ?? null,
    version,
  };
}

export type SessionItem = Static<typeof sessionItem.schema>;
