import type { ApiKey } from '../postgres/stores/api-keys.ts';

/* A key as it is listed, in the API and with `--json`: never the key itself. */

export function renderKey(key: ApiKey) {
  return {
    key_id: key.keyId,
    label: key.label,
    scopes: [...key.scopes],
    status: keyStatus(key),
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}

export function keyStatus({ expiresAt, revokedAt }: ApiKey): 'live' | 'expired' | 'revoked' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}
